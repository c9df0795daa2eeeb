"""Decide what an agent is doing from all evidence about it.

Sources differ in strength and in age. Only the process proves whether anything runs. A hook comes from the
agent itself, but may be out of date. The state file, the title and the screen are read now, but reading
them involves a guess. So a hook wins while it is fresh; after that, a source that was read now wins.
"""

from __future__ import annotations

from mam.core.string_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class ActivityState(StrEnum):
    """What a running agent does."""

    BOOTING = "booting"
    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting"
    EXITED = "exited"
    UNKNOWN = "unknown"


BOOTING, IDLE, WORKING = ActivityState.BOOTING, ActivityState.IDLE, ActivityState.WORKING
WAITING, EXITED, UNKNOWN = ActivityState.WAITING, ActivityState.EXITED, ActivityState.UNKNOWN
STATES = tuple(ActivityState)

# Strongest first, among evidence that is equally fresh.
SOURCES = ("process", "hook", "state-file", "transcript", "title", "screen")

# Sources that are read at the moment of the decision, and so are never out of date; the surest first.
LIVE_SOURCES = ("state-file", "title", "screen")

# Dialogs that no agent reports by a hook. When the screen shows one, all other evidence is older.
SILENT_DIALOGS = ("trust", "login", "limit", "update", "api-key", "bypass", "notice")

# The detail of a screen whose input box takes commands of the shell, and no text for the agent.
SHELL_MODE = "shell mode"

FRESH_SECONDS = 2.0
# What was recorded further in the future than this has a wrong time: the clock was set back since.
AHEAD_SECONDS = 2.0

# A screen or a title does not tell since when its state holds. The observer remembers the first time it
# saw the state, as long as no gap between two observations is longer than this. Two observations of
# WORKING are one state only while the agent's transcript has not grown between them.
LASTING = (IDLE, WAITING, WORKING)
LONGEST_GAP_SECONDS = 300.0

# Hooks of turns that failed. No hook tells what the agent shows then, for example a limit.
_FAILURES = ("StopFailure",)


class Evidence:
    """What one source says about the activity, and since when."""

    __slots__ = ("at", "detail", "source", "state", "waiting_for")

    def __init__(
        self, source: str, state: str, at: float, waiting_for: str | None = None, detail: str = ""
    ) -> None:
        self.source = source
        self.state = state
        self.at = at
        self.waiting_for = waiting_for
        self.detail = detail


class Activity:
    """The decided state: its source, since when it holds, and which rule decided."""

    __slots__ = ("at", "disagreeing", "rule", "source", "state", "waiting_for")

    def __init__(self, state: str, source: str, at: float, rule: str, waiting_for: str | None = None) -> None:
        self.state = state
        self.source = source
        self.at = at
        self.rule = rule
        self.waiting_for = waiting_for
        self.disagreeing: list[Evidence] = []


def is_misdated(at: float, now: float) -> bool:
    """Tell whether a recorded time lies in the future, because the clock was set back since."""
    return at > now + AHEAD_SECONDS


def plausible_time(at: float, now: float) -> float:
    """Return the time of a record; for one from the future a time that is not fresh, so that news wins."""
    return now - 2 * FRESH_SECONDS if is_misdated(at, now) else at


def fuse(evidence: Sequence[Evidence], now: float) -> Activity:
    """Return the activity; evidence for another state is listed in `disagreeing`."""
    if len(evidence) == 2 and evidence[0].state in (BOOTING, UNKNOWN) and evidence[1].source == "hook":
        # The most frequent case of a long listing: the process runs, and only its hook reports a state.
        return _verdict(evidence[1], "the hook is the strongest source that reports")
    reports = [item for item in evidence if item.state != UNKNOWN]
    verdict = _decide(reports, now)
    verdict.disagreeing = [
        item
        for item in reports
        if item.state != verdict.state and item.source not in ("process", verdict.source)
    ]
    return verdict


def is_lasting(verdict: Activity) -> bool:
    """Tell whether the observer must remember since when the state holds: its source does not tell."""
    return verdict.source in ("title", "screen") and verdict.state in LASTING


def since(verdict: Activity, remembered: Mapping[str, Any], now: float) -> float:
    """Return since when an observed state holds, given what earlier observations remembered."""
    is_same = (remembered["state"], remembered["waiting_for"]) == (verdict.state, verdict.waiting_for)
    is_unbroken = abs(now - remembered["seen"]) <= LONGEST_GAP_SECONDS
    return min(verdict.at, remembered["since"]) if is_same and is_unbroken else verdict.at


def _decide(reports: list[Evidence], now: float) -> Activity:
    process, screen = _of(reports, "process"), _of(reports, "screen")
    if process and process.state == EXITED:
        return _verdict(process, "the process has ended, whatever other sources report")
    dialog = (screen.waiting_for or "").partition(",")[0] if screen else ""
    if screen and dialog in SILENT_DIALOGS:
        return _verdict(screen, f"the screen shows a {dialog} dialog, which no hook reports")
    ranked = [item for item in reports if item.source != "process"]
    if len(ranked) > 1:
        ranked.sort(key=lambda item: SOURCES.index(item.source))
    recorded = [item for item in ranked if item.source not in LIVE_SOURCES]
    state_file = _of(reports, "state-file")
    newest = state_file.at if state_file else 0.0
    has_dialog = any(item.state == WAITING for item in ranked if item.source in LIVE_SOURCES)
    # An agent writes its transcript only now and then. A dialog that is visible now is newer.
    usable = [item for item in recorded if item.source == "hook" or not has_dialog]
    fresh = [item for item in usable if now - item.at <= FRESH_SECONDS and item.at >= newest]
    if fresh:
        return _verdict(fresh[0], f"the {fresh[0].source} reported within the last {FRESH_SECONDS:g} s")
    live = next((item for source in LIVE_SOURCES if (item := _of(reports, source))), None)
    if live:
        return _from_live(live, ranked)
    if recorded:
        return _verdict(recorded[0], f"the {recorded[0].source} is the strongest source that reports")
    if process:
        return _verdict(process, "only the process gives evidence")
    return Activity(UNKNOWN, "none", now, "there is no evidence")


def _from_live(live: Evidence, ranked: list[Evidence]) -> Activity:
    """Return the state of a live source, with the age and the detail of other sources that agree."""
    agreeing = [item for item in ranked if item.state == live.state]
    waiting_for = next((item.waiting_for for item in (live, *agreeing) if item.waiting_for), None)
    record = next((item for item in agreeing if item.source not in LIVE_SOURCES), None)
    if record:
        rule = f"the {record.source} reports it, and the {live.source} agrees"
        return Activity(record.state, record.source, record.at, rule, waiting_for)
    rule = f"the {live.source} was read now; all other evidence is older"
    return Activity(live.state, live.source, live.at, rule, waiting_for)


def _of(reports: list[Evidence], source: str) -> Evidence | None:
    for item in reports:
        if item.source == source:
            return item
    return None


def _verdict(item: Evidence, rule: str) -> Activity:
    return Activity(item.state, item.source, item.at, rule, item.waiting_for)


def is_asking(evidence: Sequence[Evidence]) -> bool:
    """Tell whether a live source shows a dialog: a hook that says otherwise may be a moment behind."""
    return any(item.state == WAITING and item.source in LIVE_SOURCES for item in evidence)


def needs_screen(evidence: Sequence[Evidence], now: float) -> bool:
    """Tell whether a cheap listing must read the screen.

    It must if no cheaper source reports a state, or if the newest report is old and is not plain idle.
    """
    reports = [
        item for item in evidence if item.source not in ("process", "screen") and item.state != UNKNOWN
    ]
    if any(item.state == EXITED for item in evidence):
        return False
    newest = max(reports, key=lambda item: item.at, default=None)
    if newest is None or newest.source == "transcript":
        return True
    is_at_rest = newest.state == IDLE and newest.detail not in _FAILURES
    return not is_at_rest and now - newest.at > FRESH_SECONDS
