"""Taking in what hooks wrote: the newest word of each session's own agent.

A payload counts only if the agent's own process wrote it: a child that inherited the
environment carries the same session id and another parent.
"""

from __future__ import annotations

import os

from mam.adapters.store.tables import evidence
from mam.core.activity import Evidence
from mam.core.errors import Unavailable
from mam.core.names import is_session_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from mam.adapters.agents.kind import HookEvent
    from mam.adapters.store.tables.evidence import Payload
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# How long a payload waits for somebody who knows its session; its row may be about to be committed.
_WAITS_SECONDS = 300.0
# Files are dated by a clock that is some milliseconds behind.
COARSE_SECONDS = 0.05


class Word:
    """The newest hook of a session."""

    __slots__ = ("at", "data")

    def __init__(self, at: float, data: dict[str, Any]) -> None:
        self.at = at
        self.data = data

    def as_evidence(self) -> Evidence:
        """Return it as evidence of activity."""
        return Evidence(
            "hook", self.data["state"], self.at, self.data.get("waiting_for"), self.data.get("event", "")
        )


def listen(context: Context, rows: Iterable[Row]) -> dict[str, Word]:
    """Take in the spool and return the newest word for each session id.

    Payloads of sessions that are not among `rows` are left to somebody who asks for them.
    """
    waiting = evidence.pending(context.paths.spool, context.now())
    heard_before = evidence.recorded(context.registry, "hook")
    words = {session_id: Word(at, data) for session_id, (at, data) in heard_before.items()}
    if not waiting:
        return words
    by_id = {row["id"]: row for row in rows if row.get("id")}
    waiting = [one for one in waiting if one.session_id in by_id or _is_nobodys(one, context.now())]
    heard = [
        (payload, understood) for payload in waiting if (understood := _understand(context, payload, by_id))
    ]
    for payload, data in heard:
        if data["state"] and (payload.session_id not in words or payload.at >= words[payload.session_id].at):
            words[payload.session_id] = Word(payload.at, data)
    told: set[str] = set()
    try:
        told = context.registry.note(lambda draft: _keep(context, draft, heard, by_id))
        for payload in waiting:
            _remove(payload.path)
    except Unavailable:
        # What was heard is in `words`; the files stay for somebody who may write.
        return words
    if told:
        from mam.app.jobs.write_files import show

        for job_id in told:
            show(context, job_id)
    return words


def overhear(context: Context, row: Row, since: float = 0.0) -> Iterator[HookEvent]:
    """Yield what the agent of one session said since then and nobody took in yet; it stays in the spool."""
    for payload in evidence.pending(context.paths.spool, session_id=row["id"]):
        if payload.at >= since and (heard := _hear(context, row, payload)) is not None:
            yield heard


def _hear(context: Context, row: Row, payload: Payload) -> HookEvent | None:
    kind = context.kind(row["agent"])
    pane_pid = (row.get("pane") or {}).get("pid") or 0
    return kind.hear(payload.data) if kind.is_voice(int(payload.pid), pane_pid) else None


def _understand(context: Context, payload: Payload, rows: dict[str, Row]) -> dict[str, Any] | None:
    row = rows.get(payload.session_id)
    heard = _hear(context, row, payload) if row is not None else None
    if heard is None:
        return None
    return {
        "event": heard.event,
        "state": heard.state,
        "waiting_for": heard.waiting_for,
        "conversation": heard.conversation,
    }


def _is_nobodys(payload: Payload, now: float) -> bool:
    return not is_session_id(payload.session_id) or now - payload.at > _WAITS_SECONDS


def _keep(
    context: Context, draft: Transaction, heard: list[tuple[Payload, dict[str, Any]]], rows: dict[str, Row]
) -> set[str]:
    """Keep what was heard; return the jobs that it was reported of."""
    told: set[str] = set()
    for payload, data in heard:
        if not data["state"]:
            continue
        evidence.record(draft.connection, payload.session_id, "hook", payload.at, data)
        row = rows[payload.session_id]
        if row.get("delegate_job_id"):
            from mam.app.jobs.session_events import hear

            said = hear(context, draft, row, data["state"], data.get("waiting_for"), at=payload.at)
            told |= {said} if said else set()
    return told


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        # Somebody else took it, or may not: it is taken in again, which changes nothing.
        return
