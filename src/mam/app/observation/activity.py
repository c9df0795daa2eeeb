"""Gathering the evidence of what each session does, from every source, and the verdict that follows."""

from __future__ import annotations

from mam.adapters.agents.kind import Screen
from mam.adapters.store.tables import evidence
from mam.core.activity import (
    BOOTING,
    EXITED,
    UNKNOWN,
    WORKING,
    Activity,
    Evidence,
    fuse,
    is_lasting,
    is_misdated,
    needs_screen,
    since,
)
from mam.core.liveness_values import Liveness
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mam.adapters.agents.kind import Kind, ScreenState
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.context.liveness import SessionLiveness
    from mam.app.observation.newest_hook_reports import HookReport
    from mam.core.session_row import Row

# After this time a session without any evidence is not booting any more: its activity is unknown.
_BOOT_SECONDS = 120.0
# The source under which earlier looks are recorded, and how often an unchanged look is recorded again.
LOOK, _REPEAT_SECONDS = "look", 60.0
# Evidence further in the future than this has a wrong time: clocks of one machine differ by less.
_AHEAD_SECONDS = 60.0


class SessionEvidence:
    """A session with its liveness and all evidence of its activity."""

    __slots__ = ("conversation", "evidence", "kind", "liveness", "remembered", "row")

    def __init__(self, row: Row, liveness: SessionLiveness, kind: Kind) -> None:
        self.row = row
        self.liveness = liveness
        self.kind = kind
        # The conversation that the agent itself names, which may be newer than the row's.
        self.conversation: str | None = None
        self.evidence: list[Evidence] = []
        # The record of earlier looks; set only where the screen was captured now.
        self.remembered: dict[str, Any] | None = None

    def verdict(self, now: float) -> Activity:
        """Return the activity that follows from all evidence."""
        activity = fuse(self.evidence, now)
        if self.remembered and is_lasting(activity):
            activity.at = since(activity, self.remembered, now)
        return activity


def gather(
    context: Context,
    rows: Sequence[Row],
    liveness_by_name: dict[str, SessionLiveness],
    reports: dict[str, HookReport],
    *,
    thorough: bool,
) -> list[SessionEvidence]:
    """Return the evidence for many sessions; screens are captured in one call per tmux server.

    A thorough gathering reads the screen and the transcript of every live session. A quick one captures only
    the screens of sessions without other evidence.
    """
    now = context.now()
    kinds = {agent: context.kind(agent) for agent in {row["agent"] for row in rows}}
    sessions = [SessionEvidence(row, liveness_by_name[row["name"]], kinds[row["agent"]]) for row in rows]
    for session in sessions:
        _add_process_and_hook(session, reports.get(session.row.get("id") or ""), now)
        if thorough:
            _add_title_and_transcript(session, now)
    if to_capture := [session for session in sessions if _needs_screen(session, thorough, now)]:
        _add_screens(context, to_capture, now)
        remembered = evidence.recorded(context.registry, LOOK)
        for session in to_capture:
            session.remembered = remembered.get(session.row.get("id") or "", (0.0, None))[1]
    return sessions


def record_looks(context: Context, entries: Sequence[Mapping[str, Any]]) -> None:
    """Record since when sessions are in a state that only title or screen show.

    `entries` are sessions as `ls` lists them. The record of a session whose state is unknown now stays.
    """
    now = context.now()
    before = {key: data for key, (_, data) in evidence.recorded(context.registry, LOOK).items()}
    new, ended = {}, []
    for entry in entries:
        at = now - entry["activity_age_s"]
        verdict = Activity(entry["activity"], entry["activity_source"], at, "", entry["waiting_for"])
        last = before.get(entry["id"])
        if is_lasting(verdict):
            size = _record_size(context, entry) if verdict.state == WORKING else 0
            began = since(verdict, last, now) if last else at
            if last and last.get("size", 0) != size:
                # The transcript has grown: the agent did something, and its state begins anew.
                began = now
            data = {"state": verdict.state, "waiting_for": verdict.waiting_for, "since": began, "seen": now}
            data["size"] = size
            if not last or {**data, "seen": last["seen"]} != last or now - last["seen"] > _REPEAT_SECONDS:
                new[entry["id"]] = data
        elif last and verdict.state != UNKNOWN:
            ended.append(entry["id"])
    if new or ended:
        context.registry.note(lambda transaction: _record(transaction, new, ended))


def _record_size(context: Context, entry: Mapping[str, Any]) -> int:
    conversation = (entry.get("resume") or {}).get("id") or ""
    return context.kind(entry["agent"]).transcript_size(conversation, entry.get("stores") or {})


def _record(transaction: Transaction, new: Mapping[str, dict[str, Any]], ended: Sequence[str]) -> None:
    for session_id in ended:
        evidence.clear(transaction.connection, session_id, LOOK)
    for session_id, data in new.items():
        evidence.record(transaction.connection, session_id, LOOK, data["seen"], data, data["seen"])


def gather_one(
    context: Context, row: Row, liveness: SessionLiveness, report: HookReport | None, screen: ScreenState
) -> SessionEvidence:
    """Return the evidence for one session whose screen was captured just now."""
    now = context.now()
    session = SessionEvidence(row, liveness, context.kind(row["agent"]))
    _add_process_and_hook(session, report, now)
    _add_title_and_transcript(session, now)
    if liveness.state == Liveness.ALIVE and session.kind.reads_screen:
        session.evidence.append(_of_screen(screen, now))
    return session


def _add_process_and_hook(session: SessionEvidence, report: HookReport | None, now: float) -> None:
    row, liveness = session.row, session.liveness
    if not is_running(row) or liveness.state in (Liveness.DEAD, Liveness.GONE):
        at = row.get("stopped_at_epoch") or row.get("terminated_at_epoch") or now
        session.evidence.append(Evidence("process", EXITED, at, detail=liveness.reason or row["status"]))
        return
    if liveness.state == Liveness.ALIVE:
        started = row["last_action"]["at_epoch"] or now
        is_young = not is_misdated(started, now) and now - started < _BOOT_SECONDS
        is_booting = session.kind.reads_screen and is_young
        state = BOOTING if is_booting else WORKING if session.kind.works_while_alive else UNKNOWN
        session.evidence.append(Evidence("process", state, started, detail="the process runs"))
        if session.kind.has_state_file:
            _add_state_file(session, now)
    if report and report.data["state"]:
        session.evidence.append(report.as_evidence())
        session.conversation = session.conversation or report.data.get("conversation")


def _add_state_file(session: SessionEvidence, now: float) -> None:
    pane = session.row.get("pane") or {}
    state = session.kind.read_state(
        pane.get("pid", 0), pane.get("pid_start", 0), session.row.get("stores") or {}
    )
    if state:
        session.evidence.append(_without_future(state[0], now))
        session.conversation = state[1]


def _add_title_and_transcript(session: SessionEvidence, now: float) -> None:
    if session.liveness.state != Liveness.ALIVE or session.liveness.pane is None:
        return
    title = session.liveness.pane.title
    session.evidence.append(Evidence("title", session.kind.read_title(title), now, detail=title))
    conversation = session.conversation or current_conversation(session.row)
    if conversation:
        stores = session.row.get("stores") or {}
        for record in session.kind.read_transcript_evidence(conversation, session.row["workspace"], stores):
            session.evidence.append(_without_future(record, now))


def _without_future(evidence: Evidence, now: float) -> Evidence:
    """Return the evidence, made old where its time is in the future: such a time must not make it fresh."""
    if evidence.at > now + _AHEAD_SECONDS:
        evidence.at = 0.0
    return evidence


def _needs_screen(session: SessionEvidence, thorough: bool, now: float) -> bool:
    if session.liveness.state != Liveness.ALIVE or not session.kind.reads_screen:
        return False
    return thorough or needs_screen(session.evidence, now)


def _add_screens(context: Context, sessions: list[SessionEvidence], now: float) -> None:
    by_server: dict[str, list[SessionEvidence]] = {}
    for session in sessions:
        by_server.setdefault(session.row["tmux_server"], []).append(session)
    for server, group in by_server.items():
        panes = [session.liveness.pane.id for session in group if session.liveness.pane]
        # Nothing is typed on this evidence, so it does without the styles, which cost tmux much.
        captures = context.tmux(server).screens(panes)
        for session in group:
            capture = captures.get(session.liveness.pane.id) if session.liveness.pane else None
            if capture is not None:
                screen = Screen(capture.captured, capture.cursor_x, capture.cursor_y)
                session.evidence.append(_of_screen(session.kind.read_screen(screen), now))


def _of_screen(screen: ScreenState, now: float) -> Evidence:
    detail = ", ".join(part for part in (screen.dialog, screen.box, screen.detail) if part)
    return Evidence("screen", screen.state, now, _waiting_for(screen), detail)


def _waiting_for(screen: ScreenState) -> str | None:
    """Return what the agent waits for by its screen; for a limit also when the limit ends."""
    return f"limit, resets {screen.detail}" if screen.dialog == "limit" and screen.detail else screen.dialog
