"""Sessions as an agent that delegates sees them: one word for the state, and who started whom. Reads only."""

from __future__ import annotations

from mam.app.observation.ls import describe
from mam.core import authority
from mam.core.activity import WAITING
from mam.core.delegated_agent_state import agent_state
from mam.core.session_row import Status, own_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    Agent = dict[str, Any]


def agents(
    context: Context,
    caller: Caller,
    *,
    ids: Sequence[str] = (),
    mine: bool = False,
    parent: str | None = None,
    thorough: bool = False,
) -> list[Agent]:
    """Return the sessions that are meant; an id or name that is not registered is refused.

    `mine` are those that the caller started, and what these started; a person's are all.
    """
    view = context.registry.view()
    wanted = {view.find(one)["id"] for one in ids}
    above = view.find(parent)["id"] if parent else None
    me = caller.name

    def fits(row: Row) -> bool:
        return (
            (not ids or row["id"] in wanted)
            and (above is None or row.get("parent") == above)
            and (not mine or me == authority.OPERATOR or authority.descends(row["id"], me, view.rows))
        )

    return [shown(one) for one in describe(context, view, fits, thorough=thorough)]


def agent(context: Context, caller: Caller, target: str) -> Agent:
    """Return one session, looked at thoroughly."""
    return agents(context, caller, ids=[target], thorough=True)[0]


def shown(one: dict[str, Any]) -> Agent:
    """Return a session of a listing in the words of agents."""
    spoken = None if own_id(one) else one["resume"]["on_disk"]  # type: ignore[arg-type]  # a row and more
    return {
        "agent_id": one["id"],
        "name": one["name"],
        "state": agent_state(
            one["status"],
            one["activity"],
            termination_mode=one.get("termination_mode"),
            has_spoken=spoken,
        ),
        "blocked_on_prompt": one["status"] == Status.RUNNING and one["activity"] == WAITING,
        "waiting_for": one["waiting_for"],
        "cli": one["agent"],
        "model": one.get("model"),
        "role": one.get("role"),
        "parent_agent_id": one.get("parent"),
        "cwd": one["workspace"],
        "job_id": one["job"],
    }
