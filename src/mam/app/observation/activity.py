"""What each session is doing: evidence gathered from every source, and the verdict."""

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
    needs_screen,
    since,
)
from mam.core.liveness import Liveness
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mam.adapters.agents.kind import Kind, ScreenState
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.context.liveness import Sight
    from mam.app.observation.hook_reports import HookReport
    from mam.core.session_row import Row


# Who has not spoken by then is not booting any more, and nobody knows what it does.
_BOOT_SECONDS = 120.0
# The source of what earlier looks saw, and how often it is noted that the same is still seen.
LOOK, _SEEN_SECONDS = "look", 60.0
# Clocks of one machine differ by less.
_AHEAD_SECONDS = 60.0


class SessionEvidence:
    """A session with what is there of it, and what speaks of its activity."""

    __slots__ = ("conversation", "evidence", "kind", "remembered", "row", "sight")

    def __init__(self, row: Row, sight: Sight, kind: Kind) -> None:
        self.row = row
        self.sight = sight
        self.kind = kind
        # The one that the agent itself names, which may be newer than what the row knows.
        self.conversation: str | None = None
        self.evidence: list[Evidence] = []
        # What earlier looks saw, where this one saw the screen.
        self.remembered: dict[str, Any] | None = None

    def verdict(self, now: float) -> Activity:
        """Return the fused activity."""
        found = fuse(self.evidence, now)
        if self.remembered and is_lasting(found):
            found.at = since(found, self.remembered, now)
        return found


def gather(
    context: Context,
    rows: Sequence[Row],
    sights: dict[str, Sight],
    reports: dict[str, HookReport],
    *,
    thorough: bool,
) -> list[SessionEvidence]:
    """Return the evidence for many sessions; screens are captured in one call per server.

    A thorough gathering reads every live screen and record; a quick one only where nobody speaks.
    """
    now = context.now()
    kinds = {agent: context.kind(agent) for agent in {row["agent"] for row in rows}}
    found = [SessionEvidence(row, sights[row["name"]], kinds[row["agent"]]) for row in rows]
    for one in found:
        _add_cheap(one, reports.get(one.row.get("id") or ""), now)
        if thorough:
            _add_records(one, now)
    if wanted := [one for one in found if _wants_screen(one, thorough, now)]:
        _add_screens(context, wanted, now)
        remembered = evidence.recorded(context.registry, LOOK)
        for one in wanted:
            one.remembered = remembered.get(one.row.get("id") or "", (0.0, None))[1]
    return found


def remember(context: Context, found: Sequence[Mapping[str, Any]]) -> None:
    """Keep since when sessions, as a listing shows them, are in a state that is only looked at.

    Of one that nobody could look at, what was seen before is kept.
    """
    now = context.now()
    before = {key: data for key, (_, data) in evidence.recorded(context.registry, LOOK).items()}
    new, over = {}, []
    for one in found:
        at = now - one["activity_age_s"]
        verdict = Activity(one["activity"], one["activity_source"], at, "", one["waiting_for"])
        had = before.get(one["id"])
        if is_lasting(verdict):
            size = _record_size(context, one) if verdict.state == WORKING else 0
            began = since(verdict, had, now) if had else at
            if had and had.get("size", 0) != size:
                # The listing's age is from before; a record that grew begins anew.
                began = now
            data = {"state": verdict.state, "waiting_for": verdict.waiting_for, "since": began, "seen": now}
            data["size"] = size
            if not had or {**data, "seen": had["seen"]} != had or now - had["seen"] > _SEEN_SECONDS:
                new[one["id"]] = data
        elif had and verdict.state != UNKNOWN:
            over.append(one["id"])
    if new or over:
        context.registry.note(lambda draft: _remember(draft, new, over))


def _record_size(context: Context, one: Mapping[str, Any]) -> int:
    conversation = (one.get("resume") or {}).get("id") or ""
    return context.kind(one["agent"]).record_size(conversation, one.get("stores") or {})


def _remember(draft: Transaction, new: Mapping[str, dict[str, Any]], over: Sequence[str]) -> None:
    for session_id in over:
        evidence.clear(draft.connection, session_id, LOOK)
    for session_id, data in new.items():
        evidence.record(draft.connection, session_id, LOOK, data["seen"], data)


def add_up(
    context: Context, row: Row, sight: Sight, report: HookReport | None, look: ScreenState
) -> SessionEvidence:
    """Return the evidence for one session whose screen was looked at just now."""
    now = context.now()
    found = SessionEvidence(row, sight, context.kind(row["agent"]))
    _add_cheap(found, report, now)
    _add_records(found, now)
    if sight.state == Liveness.ALIVE and found.kind.reads_screen:
        found.evidence.append(_of_screen(look, now))
    return found


def _add_cheap(one: SessionEvidence, report: HookReport | None, now: float) -> None:
    sight = one.sight
    if not is_running(one.row) or sight.state in (Liveness.DEAD, Liveness.GONE):
        at = one.row.get("stopped_at_epoch") or one.row.get("terminated_at_epoch") or now
        one.evidence.append(Evidence("process", EXITED, at, detail=sight.reason or one.row["status"]))
        return
    if sight.state == Liveness.ALIVE:
        started = one.row["last_action"]["at_epoch"] or now
        boots = one.kind.reads_screen and now - started < _BOOT_SECONDS
        state = BOOTING if boots else UNKNOWN
        one.evidence.append(Evidence("process", state, started, detail="the process runs"))
        if one.kind.has_state_file:
            _add_state(one, now)
    if report and report.data["state"]:
        one.evidence.append(report.as_evidence())
        one.conversation = one.conversation or report.data.get("conversation")


def _add_state(one: SessionEvidence, now: float) -> None:
    pane = one.row.get("pane") or {}
    said = one.kind.read_state(pane.get("pid", 0), pane.get("pid_start", 0), one.row.get("stores") or {})
    if said:
        one.evidence.append(_dated(said[0], now))
        one.conversation = said[1]


def _add_records(one: SessionEvidence, now: float) -> None:
    if one.sight.state != Liveness.ALIVE or one.sight.pane is None:
        return
    title = one.sight.pane.title
    one.evidence.append(Evidence("title", one.kind.read_title(title), now, detail=title))
    conversation = one.conversation or current_conversation(one.row)
    if conversation:
        stores = one.row.get("stores") or {}
        for said in one.kind.read_records(conversation, one.row["workspace"], stores):
            one.evidence.append(_dated(said, now))


def _dated(one: Evidence, now: float) -> Evidence:
    """Return evidence that is not from the future: what says so has no age that could make it fresh."""
    if one.at > now + _AHEAD_SECONDS:
        one.at = 0.0
    return one


def _wants_screen(one: SessionEvidence, thorough: bool, now: float) -> bool:
    if one.sight.state != Liveness.ALIVE or not one.kind.reads_screen:
        return False
    return thorough or needs_screen(one.evidence, now)


def _add_screens(context: Context, wanted: list[SessionEvidence], now: float) -> None:
    by_server: dict[str, list[SessionEvidence]] = {}
    for one in wanted:
        by_server.setdefault(one.row["tmux_server"], []).append(one)
    for server, group in by_server.items():
        screens = context.tmux(server).capture([one.sight.pane.id for one in group if one.sight.pane])
        for one in group:
            text = screens.get(one.sight.pane.id) if one.sight.pane else None
            if text is not None:
                one.evidence.append(_of_screen(one.kind.look(Screen(text)), now))


def _of_screen(look: ScreenState, now: float) -> Evidence:
    detail = ", ".join(part for part in (look.dialog, look.box, look.detail) if part)
    return Evidence("screen", look.state, now, _wants(look), detail)


def _wants(look: ScreenState) -> str | None:
    """Return what a screen waits for; a limit with the time at which it ends."""
    return f"limit, resets {look.detail}" if look.dialog == "limit" and look.detail else look.dialog
