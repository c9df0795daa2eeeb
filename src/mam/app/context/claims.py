"""A verb in flight: nobody else works on its session, and its death is noticed.

The intent is committed before the first effect. When this process dies on the way, the next
changing verb finds the intent without a living owner and finishes or cleans what it began.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from mam.adapters.store.intents import Intent
from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.core.errors import Refused, RegistryBusy, StartUnconfirmed, Unavailable, Unconfirmed
from mam.core.session_row import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context

    T = TypeVar("T")

WAIT_SECONDS = 20.0
STEP = 0.02
# Intents of this process that it gave up and could not say so, because the disk was full.
_given_up: set[tuple[str, float]] = set()


def is_owned(intent: Intent) -> bool:
    """Tell whether the process that began a change still lives and is at it."""
    owner = Identity.from_json(intent.owner)
    if owner is None or not process.is_alive(owner):
        return False
    return owner.pid != os.getpid() or (intent.session_id, intent.at) not in _given_up


def claim(context: Context, work: Callable[[Transaction], T]) -> T:
    """Commit an intent. The file is not written: it shows no intents, and a full disk ends the verb here."""
    from mam.app.context.liveness import confirm

    begun: list[Intent] = []

    def noted(draft: Transaction) -> T:
        done = work(draft)
        begun.extend(one for one in draft.intents.all() if one.at == draft.now and _is_mine(one))
        return done

    try:
        return context.registry.commit(noted, lambda row, status: confirm(context, row, status))
    except Unavailable:
        # The disk may fail a commit that whoever opens the database next finds there all the same.
        for intent in begun:
            withdraw(context, intent.session_id, intent.at, for_good=True)
        raise


def change(context: Context, work: Callable[[Transaction], T]) -> T:
    """Change the registry; a status that a person wrote by hand is confirmed by looking."""
    from mam.app.context.liveness import confirm

    return context.registry.change(work, lambda row, status: confirm(context, row, status))


@contextmanager
def in_flight(
    context: Context, verb: str, target: str, prepare: Callable[[Transaction, Row], dict[str, Any] | None]
) -> Iterator[Row | None]:
    """Claim a registered session for a verb; yields its row, or None when prepare found nothing to do.

    `prepare` runs under the lock: it checks, and returns what recovery will need to know.
    """
    row, at = _claim(context, verb, target, prepare)
    if row is None:
        yield None
        return
    try:
        yield row
    except BaseException as error:
        let_go(context, row["id"], at, error)
        raise
    abandon(context, row["id"], at, for_good=True)


def let_go(context: Context, session_id: str, at: float, error: BaseException) -> None:
    """End the intent of a verb that failed; where its effects are unknown, leave it to recovery."""
    abandon(
        context,
        session_id,
        at,
        for_good=isinstance(error, (Refused, Unconfirmed)) and not isinstance(error, StartUnconfirmed),
    )


def abandon(context: Context, session_id: str, at: float, *, for_good: bool) -> None:
    """End an intent for good, or leave it without an owner; neither waits for a disk that is full."""
    failure = withdraw(context, session_id, at, for_good=for_good)
    if failure is not None:
        context.warn(f"what is left half done is cleaned by the next command ({failure})")


def withdraw(context: Context, session_id: str, at: float, *, for_good: bool) -> Unavailable | None:
    """Give up an intent of this process, if it is there; return why nobody else can be told."""

    def work(draft: Transaction) -> None:
        intent = draft.intents.of(session_id)
        if intent is None or intent.at != at or not _is_mine(intent):
            return
        if for_good:
            draft.intents.end(session_id, at)
        else:
            intent.owner = {}
            draft.intents.put(intent)

    _given_up.add((session_id, at))
    try:
        context.registry.note(work)
    except Unavailable as failure:
        return failure
    _given_up.discard((session_id, at))
    return None


def _is_mine(intent: Intent) -> bool:
    return Identity.from_json(intent.owner) == process.me()


def _claim(
    context: Context, verb: str, target: str, prepare: Callable[[Transaction, Row], dict[str, Any] | None]
) -> tuple[Row | None, float]:
    from mam.adapters.system.deadline import Deadline

    deadline = Deadline(WAIT_SECONDS)

    def work(draft: Transaction) -> tuple[bool, Row | None, float]:
        row = draft.find(target)
        if not is_free(draft, row["id"], row["name"]):
            return False, None, draft.now
        notes = prepare(draft, row)
        if notes is None:
            return True, None, draft.now
        draft.intents.put(new_intent(row["id"], row["name"], verb, draft.now, notes))
        return True, row, draft.now

    while True:
        done, row, at = claim(context, work)
        if done:
            if row is None:
                change(context, lambda draft: None)
            return row, at
        if not deadline.pause(STEP):
            raise busy(context, target)


def annotate(draft: Transaction, session_id: str, notes: Mapping[str, Any]) -> None:
    """Note how far the verb got that holds a session."""
    intent = draft.intents.of(session_id)
    if intent is not None:
        intent.data = notes
        draft.intents.put(intent)


def is_free(draft: Transaction, session_id: str, name: str) -> bool:
    """Tell whether no living process works on a session or takes its name."""
    return not any(
        is_owned(intent)
        for intent in draft.intents.all()
        if intent.session_id == session_id or intent.name == name
    )


def busy(context: Context, target: str) -> RegistryBusy:
    """Return the error for a session that somebody else is working on."""
    intent = next(
        (one for one in context.registry.view().intents if target in (one.name, one.session_id)), None
    )
    who = f"a {intent.verb} by process {intent.owner.get('pid')}" if intent else "another change"
    return RegistryBusy(
        f"{who} is under way on '{target}'", hint="wait for it, or end that process, and repeat"
    )


def new_intent(session_id: str, name: str, verb: str, now: float, notes: Mapping[str, Any]) -> Intent:
    """Return the intent of this process."""
    _given_up.discard((session_id, now))
    return Intent(session_id, name, verb, owner=process.me().as_json(), at=now, data=notes)
