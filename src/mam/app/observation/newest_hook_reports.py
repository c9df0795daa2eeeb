"""Reading what hooks report: the newest report of each session's agent. Reads only.

A payload counts only if the hook's parent is the session's own agent. Another agent that the session's agent
starts inherits the environment: its hooks write the same session id, but have another parent.
"""

from __future__ import annotations

from mam.adapters.store.files import hook_spool
from mam.adapters.store.tables import evidence
from mam.core.activity import Evidence, is_misdated, plausible_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from mam.adapters.agents.kind import HookEvent
    from mam.adapters.store.files.hook_spool import Payload
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# Linux dates files by a coarse clock, which is some milliseconds behind time.time().
COARSE_SECONDS = 0.05
# Many hooks report no state. A reader opens at most so many payloads of one session to find one that does.
_MOST_OPENED = 200
# A reader reads at most so many bytes of the spool: each session has an equal share, newest payload first.
_MOST_BYTES = 32 * 1024 * 1024


class HookReport:
    """The newest report of a session's hooks, with its time."""

    __slots__ = ("at", "data", "is_misdated")

    def __init__(self, at: float, data: dict[str, Any], *, is_misdated: bool = False) -> None:
        """`is_misdated` means that the clock was set back since: every payload in the spool is newer."""
        self.at = at
        self.data = data
        self.is_misdated = is_misdated

    def is_newer_than(self, at: float) -> bool:
        """Tell whether a payload of this time is older than the report."""
        return at < self.at and not self.is_misdated

    def as_evidence(self) -> Evidence:
        """Return the report as evidence of activity."""
        return Evidence(
            "hook", self.data["state"], self.at, self.data.get("waiting_for"), self.data.get("event", "")
        )


def newest_reports(context: Context, rows: Iterable[Row]) -> dict[str, HookReport]:
    """Return the newest report for each session id, from the evidence table and from the spool."""
    # Read the spool first: a payload that is taken in meanwhile is in the table when the table is read.
    pending = hook_spool.pending(context.paths.spool, context.now())
    reports = recorded_reports(context)
    if not pending:
        return reports
    by_id = {row["id"]: row for row in rows if row.get("id")}
    was_taken_in = False
    opened: dict[str, int] = {}
    share = _MOST_BYTES // max(1, len({payload.session_id for payload in pending}))
    read: dict[str, int] = {}
    # The newest payload comes first, so that older ones of the same session need not be opened.
    for payload in reversed(pending):
        recorded, row = reports.get(payload.session_id), by_id.get(payload.session_id)
        if row is None or payload.is_too_large or (recorded and recorded.is_newer_than(payload.at)):
            continue
        opened[payload.session_id] = opened.get(payload.session_id, 0) + 1
        read[payload.session_id] = read.get(payload.session_id, 0) + payload.size
        data = interpret(context, row, payload)
        was_taken_in = was_taken_in or payload.is_gone
        if data is not None and data["state"]:
            reports[payload.session_id] = HookReport(payload.at, data)
        if (
            (data is not None and data["state"])
            or opened[payload.session_id] >= _MOST_OPENED
            or read[payload.session_id] >= share
        ):
            by_id.pop(payload.session_id)
    return _newer(reports, recorded_reports(context)) if was_taken_in else reports


def _newer(reports: dict[str, HookReport], recorded: dict[str, HookReport]) -> dict[str, HookReport]:
    """Return the newer report of each session: another process has taken in a payload meanwhile."""
    return {
        session_id: max(
            (source[session_id] for source in (reports, recorded) if session_id in source),
            key=lambda report: report.at,
        )
        for session_id in {*reports, *recorded}
    }


def recorded_reports(context: Context) -> dict[str, HookReport]:
    """Return the newest report for each session id in the evidence table."""
    recorded, now = evidence.recorded(context.registry, "hook"), context.now()
    return {
        session_id: HookReport(plausible_time(at, now), data, is_misdated=is_misdated(at, now))
        for session_id, (at, data) in recorded.items()
    }


def pending_events(context: Context, row: Row, since: float = 0.0) -> Iterator[HookEvent]:
    """Yield the events of one session's agent since a time that are still in the spool; they stay there."""
    for payload in hook_spool.pending(context.paths.spool, session_id=row["id"]):
        if payload.at >= since and (event := read_event(context, row, payload)) is not None:
            yield event


def interpret(context: Context, row: Row, payload: Payload) -> dict[str, Any] | None:
    """Return what a payload reports of a session; None where it is not of its agent, or has no meaning."""
    event = read_event(context, row, payload)
    return None if event is None else as_report(event)


def as_report(event: HookEvent) -> dict[str, Any]:
    """Return what mam records of an event."""
    return {
        "event": event.event,
        "state": event.state,
        "waiting_for": event.waiting_for,
        "conversation": event.conversation,
        "asks": event.asks,
    }


def read_event(context: Context, row: Row, payload: Payload) -> HookEvent | None:
    """Return the event in a payload; None where it is not of the session's agent, or has no meaning.

    A payload on which mam fails gets a `flaw`.
    """
    kind = context.kind(row["agent"])
    pane_pid = (row.get("pane") or {}).get("pid") or 0
    if not kind.is_agent_process(int(payload.pid), pane_pid):
        return None
    data = payload.data
    payload.is_gone = data is None
    if data is None:
        return None
    try:
        return kind.read_hook(data)
    except Exception as error:
        from mam.app.context import setting_aside

        if not setting_aside.is_of_item(error):
            raise
        payload.flaw = setting_aside.reason_of(error)
        return None
