"""Reading what hooks report: the newest report of each session's own agent. Nothing is written.

A payload counts only if the agent's own process wrote it: a child that inherited the environment carries the
same session id and another parent.
"""

from __future__ import annotations

from mam.adapters.store.tables import evidence
from mam.core.activity import Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from mam.adapters.agents.kind import HookEvent
    from mam.adapters.store.tables.evidence import Payload
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# Files are dated by a clock that is some milliseconds behind.
COARSE_SECONDS = 0.05
# Most hooks say nothing of the state. So many of one session are opened in search of one that does.
_MOST_OPENED = 200


class HookReport:
    """The newest thing that a session's hooks report."""

    __slots__ = ("at", "data")

    def __init__(self, at: float, data: dict[str, Any]) -> None:
        self.at = at
        self.data = data

    def as_evidence(self) -> Evidence:
        """Return it as evidence of activity."""
        return Evidence(
            "hook", self.data["state"], self.at, self.data.get("waiting_for"), self.data.get("event", "")
        )


def newest_reports(context: Context, rows: Iterable[Row]) -> dict[str, HookReport]:
    """Return the newest report for each session id, whether it is taken in already or waits in the spool."""
    # The spool comes first: what is taken out of it meanwhile is in the record.
    waiting = evidence.pending(context.paths.spool, context.now())
    reports = recorded_reports(context)
    if not waiting:
        return reports
    by_id = {row["id"]: row for row in rows if row.get("id")}
    is_taken = False
    opened: dict[str, int] = {}
    # The newest one is looked at first, and the others of its session stay closed.
    for payload in reversed(waiting):
        known, row = reports.get(payload.session_id), by_id.get(payload.session_id)
        if row is None or (known is not None and payload.at < known.at):
            continue
        opened[payload.session_id] = opened.get(payload.session_id, 0) + 1
        data = understand(context, row, payload)
        is_taken = is_taken or payload.data is None
        if data is not None and data["state"]:
            reports[payload.session_id] = HookReport(payload.at, data)
        if (data is not None and data["state"]) or opened[payload.session_id] >= _MOST_OPENED:
            by_id.pop(payload.session_id)
    return _newer(reports, recorded_reports(context)) if is_taken else reports


def _newer(reports: dict[str, HookReport], recorded: dict[str, HookReport]) -> dict[str, HookReport]:
    """Return the newer one of each session: somebody took a payload in between the listing and the look."""
    return {
        session_id: max(
            (found[session_id] for found in (reports, recorded) if session_id in found),
            key=lambda report: report.at,
        )
        for session_id in {*reports, *recorded}
    }


def recorded_reports(context: Context) -> dict[str, HookReport]:
    """Return the newest report for each session id among those that were taken in."""
    found = evidence.recorded(context.registry, "hook")
    return {session_id: HookReport(at, data) for session_id, (at, data) in found.items()}


def pending_events(context: Context, row: Row, since: float = 0.0) -> Iterator[HookEvent]:
    """Yield what the agent of one session reported since then and nobody took in yet; it stays there."""
    for payload in evidence.pending(context.paths.spool, session_id=row["id"]):
        if payload.at >= since and (event := _hear(context, row, payload)) is not None:
            yield event


def understand(context: Context, row: Row, payload: Payload) -> dict[str, Any] | None:
    """Return what a payload reports of a session; None where it is not its agent's, or says nothing."""
    event = _hear(context, row, payload)
    if event is None:
        return None
    return {
        "event": event.event,
        "state": event.state,
        "waiting_for": event.waiting_for,
        "conversation": event.conversation,
    }


def _hear(context: Context, row: Row, payload: Payload) -> HookEvent | None:
    kind = context.kind(row["agent"])
    pane_pid = (row.get("pane") or {}).get("pid") or 0
    if not kind.is_voice(int(payload.pid), pane_pid):
        return None
    data = payload.data
    return kind.hear(data) if data is not None else None
