"""Changes a root from here that was changed from another machine or container: --take-over."""

from __future__ import annotations

from mam.adapters.store.root_identity import PLACE, my_place
from mam.adapters.store.tables import messages, teams
from mam.app.context.authority import require_person
from mam.app.roots.init_option_in_other_state import answer_in_other_state
from mam.core.errors import RootElsewhere
from mam.core.root_state import Place, RootState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]

_COMMAND = "mam init --take-over"


def take_over(context: Context, caller: Caller) -> Document:
    """Make this machine and container the place from which the root is changed.

    Raises RootElsewhere while the other place is not silent. What processes over there left half done is
    finished by the next change, as after a crash.
    """
    require_person(caller, _COMMAND)
    context.root.forget_verdict()
    verdict = context.root.verdict()
    if verdict.state != RootState.ELSEWHERE or verdict.elsewhere is None:
        return answer_in_other_state(context, _COMMAND)
    former = verdict.elsewhere
    context.root.check_safety()
    refuse_if_in_use(context, former)

    def work(transaction: Transaction) -> None:
        place = Place.from_json(transaction.meta(PLACE))
        if place is not None and not place.is_same(my_place()):
            # The other place may have changed the root since it was looked at.
            refuse_if_in_use(context, place)
        transaction.set_meta(PLACE, my_place(transaction.now).as_json())
        for intent in transaction.intents.all():
            intent.owner = {}
            transaction.intents.put(intent)
        messages.disown_all(transaction)
        teams.disown_all(transaction)
        transaction.log(caller.name, "init", None, _COMMAND, former=former.as_json())

    with context.registry.reporting():
        context.registry.note(work)
        context.root.forget_verdict()
    context.registry.close()
    return {
        "registry": context.paths.yaml,
        "changed": True,
        "former": {"host": former.host, "silent_s": round(context.now() - former.at)},
    }


def refuse_if_in_use(context: Context, place: Place) -> None:
    """Raise RootElsewhere if a place has changed the root lately."""
    if place.is_silent(context.now()):
        return
    from mam.core.times import short_age

    age = short_age(context.now() - place.at)
    raise RootElsewhere(
        f"{context.paths.root} was changed from {place.host} {age} ago, and may be in use there",
        hint="use mam there, or repeat this after ten minutes without a change there",
    )
