"""Claims: while one verb changes a session, no other verb does, and the death of the process is noticed.

The store keeps a claim as an `Intent`. It is committed before the first effect. When the process dies before
it ends the claim, the next verb finds an intent without a living owner; it finishes or cleans up what the
dead process began. `change`, by which verbs write rows with or without a claim, is here as well.
"""

from __future__ import annotations

import os
from contextlib import closing, contextmanager
from functools import partial
from time import sleep

from mam.adapters.store.intents import Intent
from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.core.errors import MamError, Refused, RegistryBusy, StartUnconfirmed, Unavailable, Unconfirmed
from mam.core.session_row import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeVar

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context

    T = TypeVar("T")

WAIT_SECONDS = 20.0
STEP = 0.02
# Where the claim of a rename has the name that the session gets.
NEW_NAME = "to"
# Where the claim of a start has the launch file that the verb took back.
WITHDRAWN = "withdrawn"
# Where the claim of a stop says that it has begun to end the agent.
ACTING = "acting"
# Claims that this process has released without recording the release, because the disk was full.
_released_unrecorded: set[tuple[str | None, float | None]] = set()
# Seconds until a release that could not be recorded is tried again.
_RETRY_SECONDS = 0.5


def is_owned(intent: Intent) -> bool:
    """Tell whether the process that made a claim still lives and has not released the claim."""
    return _is_held(intent.session_id, intent.at, intent.owner)


def _is_held(session_id: str | None, at: float | None, recorded_owner: Any) -> bool:
    owner = Identity.from_json(recorded_owner)
    if owner is None or not process.is_alive(owner):
        return False
    return owner.pid != os.getpid() or (session_id, at) not in _released_unrecorded


def left_by_the_dead(context: Context) -> bool:
    """Tell whether a dead process left a claim, or a change that the YAML file does not show.

    A change that this process has failed to show, as on a full disk, is left as well.
    """
    half_done = context.registry.half_done()
    is_unshown = any(session_id is None for session_id, _, _ in half_done)
    return (is_unshown and context.registry.has_failed_to_show) or any(
        not _is_held(*one) for one in half_done
    )


def commit_claim(context: Context, work: Callable[[Transaction], T]) -> T:
    """Commit a claim without writing the YAML file: the file shows no claims. A full disk ends the verb."""
    from mam.app.context.liveness import confirm

    claims: list[Intent] = []

    def work_and_collect(transaction: Transaction) -> T:
        result = work(transaction)
        claims.extend(
            intent
            for intent in transaction.intents.all()
            if intent.at == transaction.now and _is_mine(intent)
        )
        return result

    try:
        return context.registry.commit(work_and_collect, lambda row, status: confirm(context, row, status))
    except Unavailable:
        # SQLite may report that a commit failed although the next process to open the database finds it.
        for intent in claims:
            try_release(context, intent.session_id, intent.at, delete=True)
        raise


def change(context: Context, work: Callable[[Transaction], T]) -> T:
    """Change the registry; a status that a person wrote into the YAML file is checked against tmux."""
    from mam.app.context.liveness import confirm

    return context.registry.change(work, lambda row, status: confirm(context, row, status))


def show_unshown(context: Context) -> None:
    """Bring the YAML file up to date if a process died between its commit and the file.

    A file that cannot be written stays behind, and the verb that is about to begin may need no file.
    """
    from mam.app.context.liveness import confirm

    if not context.registry.has_unshown_changes():
        return
    try:
        context.registry.project(lambda row, status: confirm(context, row, status))
    except Unavailable as error:
        context.warn(f"the registry's file does not show the last change: {error}")


@contextmanager
def claim_session(
    context: Context, verb: str, target: str, prepare: Callable[[Transaction, Row], dict[str, Any] | None]
) -> Iterator[Row | None]:
    """Claim a registered session for a verb; yield its row, or None when `prepare` returns None.

    `prepare` runs under the lock. It checks whether the verb may run, and returns what recovery needs to
    know; None means that there is nothing to do.
    """
    row, at = _claim(context, verb, target, prepare)
    if row is None:
        yield None
        return
    try:
        yield row
    except BaseException as error:
        release_after_error(context, row["id"], at, error)
        raise
    release(context, row["id"], at, delete=True)


def release_after_error(context: Context, session_id: str, at: float, error: BaseException) -> None:
    """End the claim of a verb that failed; where its effects are unknown, leave the claim to recovery."""
    release(
        context,
        session_id,
        at,
        delete=isinstance(error, (Refused, Unconfirmed)) and not isinstance(error, StartUnconfirmed),
    )


def release(context: Context, session_id: str, at: float, *, delete: bool) -> None:
    """Delete a claim, or leave it without an owner for recovery. A full disk is a warning, not an error."""
    failure = try_release(context, session_id, at, delete=delete)
    if failure is not None:
        context.warn(f"the next mam command cleans up what this one left half done ({failure})")


def try_release(context: Context, session_id: str, at: float, *, delete: bool) -> Unavailable | None:
    """Release a claim of this process, if it exists; return the error if the release cannot be recorded.

    Then a thread goes on to try: other processes believe in the claim for as long as this one lives.
    """
    _released_unrecorded.add((session_id, at))
    failure = _record_release(context, session_id, at, delete=delete)
    if failure is not None:
        from threading import Thread

        retry = partial(_record_release_later, context.for_thread(), session_id, at, delete=delete)
        Thread(target=retry, name="mam-release", daemon=True).start()
    return failure


def _record_release(context: Context, session_id: str, at: float, *, delete: bool) -> Unavailable | None:
    claim = (session_id, at)
    is_recorded = False

    def work(transaction: Transaction) -> None:
        nonlocal is_recorded
        if claim not in _released_unrecorded:
            # A recovery of this process has taken it over.
            return
        # Here, below the write lock: the next recovery of this claim may fail at once and release it again.
        _released_unrecorded.discard(claim)
        is_recorded = True
        intent = transaction.intents.of(session_id)
        if intent is None or intent.at != at or not _is_mine(intent):
            return
        if delete:
            transaction.intents.end(session_id, at)
        else:
            intent.owner = {}
            transaction.intents.put(intent)

    try:
        # A verb that succeeded has ended its claim together with its change.
        if context.registry.peek(lambda transaction: transaction.intents.of(session_id) is None, False):
            _released_unrecorded.discard(claim)
        else:
            context.registry.note(work)
    except Unavailable as failure:
        if is_recorded:
            _released_unrecorded.add(claim)
        return failure
    return None


def _record_release_later(context: Context, session_id: str, at: float, *, delete: bool) -> None:
    with closing(context):
        while (session_id, at) in _released_unrecorded and context.paths.exists():
            sleep(_RETRY_SECONDS)
            try:
                if _record_release(context, session_id, at, delete=delete) is None:
                    return
            except MamError:
                # The root is damaged, or another's by now. A verb will say so.
                return


def _is_mine(intent: Intent) -> bool:
    return Identity.from_json(intent.owner) == process.me()


def _claim(
    context: Context, verb: str, target: str, prepare: Callable[[Transaction, Row], dict[str, Any] | None]
) -> tuple[Row | None, float]:
    from mam.adapters.system.deadline import Deadline

    deadline = Deadline(WAIT_SECONDS)
    if not context.paths.exists():
        # A commit would make a root of this directory, only to say that it has no such session.
        context.registry.view().find(target)

    def work(transaction: Transaction) -> tuple[bool, Row | None, float]:
        row = transaction.find(target)
        if not is_free(transaction, row["id"], row["name"]):
            return False, None, transaction.now
        notes = prepare(transaction, row)
        if notes is None:
            return True, None, transaction.now
        transaction.intents.put(new_intent(row["id"], row["name"], verb, transaction.now, notes))
        return True, row, transaction.now

    while True:
        was_free, row, at = commit_claim(context, work)
        if was_free:
            if row is None:
                # Write the YAML file, which `commit_claim` leaves alone.
                change(context, lambda transaction: None)
            return row, at
        if not deadline.pause(STEP):
            raise busy_error(context, target)


def annotate(transaction: Transaction, session_id: str, notes: Mapping[str, Any]) -> None:
    """Record in the claim on a session how far the verb got."""
    intent = transaction.intents.of(session_id)
    if intent is not None:
        intent.data = notes
        transaction.intents.put(intent)


def annotate_withdrawn(transaction: Transaction, session_id: str, launch_file: str) -> None:
    """Record in the claim on a session that a launch was withdrawn: its pane is not that of the agent."""
    intent = transaction.intents.of(session_id)
    if intent is not None:
        annotate(transaction, session_id, {**intent.data, WITHDRAWN: launch_file})


def is_free(transaction: Transaction, session_id: str, name: str) -> bool:
    """Tell whether no living process has claimed a session or its name."""
    return not any(
        is_owned(intent)
        for intent in transaction.intents.all()
        if intent.session_id == session_id or name in _names(intent)
    )


def is_being_ended(transaction: Transaction, session_id: str | None) -> bool:
    """Tell whether a stop has begun to end a session: it, or its recovery, records the end."""
    intent = transaction.intents.of(session_id) if session_id else None
    return intent is not None and intent.verb == "stop" and bool(intent.data.get(ACTING))


def _names(intent: Intent) -> tuple[str, str | None]:
    """Return the names that a claim keeps from others: the session's, and the one that a rename gives it."""
    return intent.name, intent.data.get(NEW_NAME)


def busy_error(context: Context, target: str) -> RegistryBusy:
    """Return the error for a session that another process has claimed."""
    intent = next(
        (
            intent
            for intent in context.registry.view().intents
            if target in (intent.session_id, *_names(intent))
        ),
        None,
    )
    claimant = f"a {intent.verb} by process {intent.owner.get('pid')}" if intent else "another change"
    return RegistryBusy(
        f"{claimant} is under way on '{target}'", hint="wait for it, or end that process, and repeat"
    )


def new_intent(session_id: str, name: str, verb: str, now: float, notes: Mapping[str, Any]) -> Intent:
    """Return a claim of this process on a session."""
    _released_unrecorded.discard((session_id, now))
    return Intent(session_id, name, verb, owner=process.me().as_json(), at=now, data=notes)
