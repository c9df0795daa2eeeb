"""What an agent is doing, decided from everything that speaks of it.

Sources differ in strength and in age. The process knows best whether anything runs at all. A hook
is the agent's own word but says nothing about what happened since. What is looked at now (the agent's
state file, its title, its screen) is never old, but a guess. So a hook wins while it is fresh, and
after that a look overrules it.
"""

from __future__ import annotations

from enum import StrEnum

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

# What is looked at just now, and therefore never old; the surest first.
LOOKS = ("state-file", "title", "screen")

# Dialogs that no hook knows of: whoever speaks of something else has not seen them.
SILENT_DIALOGS = ("trust", "login", "limit", "update", "api-key", "bypass", "notice")

FRESH_SECONDS = 2.0

# A look does not know since when it holds: who looks from time to time remembers that, while no gap
# between two looks is longer than this. Work is the same only while the agent's record has not grown.
LASTING = (IDLE, WAITING, WORKING)
LONGEST_GAP_SECONDS = 300.0

# Hooks of turns that failed: what the agent shows then, a limit for one, is said by none.
_FAILURES = ("StopFailure",)


class Evidence:
    """One source's word, and since when it holds."""

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
    """The verdict: state, where it comes from, since when, and which rule decided."""

    __slots__ = ("at", "disagreeing", "rule", "source", "state", "waiting_for")

    def __init__(self, state: str, source: str, at: float, rule: str, waiting_for: str | None = None) -> None:
        self.state = state
        self.source = source
        self.at = at
        self.rule = rule
        self.waiting_for = waiting_for
        self.disagreeing: list[Evidence] = []


def fuse(evidence: Sequence[Evidence], now: float) -> Activity:
    """Return the verdict; evidence that says otherwise is listed with it and not hidden."""
    if len(evidence) == 2 and evidence[0].state in (BOOTING, UNKNOWN) and evidence[1].source == "hook":
        # By far the most frequent case of a long listing: it runs, and nothing but its hook speaks.
        return _verdict(evidence[1], "hook is the strongest that speaks")
    known = [one for one in evidence if one.state != UNKNOWN]
    verdict = _decide(known, now)
    verdict.disagreeing = [
        one for one in known if one.state != verdict.state and one.source not in ("process", verdict.source)
    ]
    return verdict


def is_lasting(verdict: Activity) -> bool:
    """Tell whether somebody has to remember since when this holds, as it is only looked at."""
    return verdict.source in ("title", "screen") and verdict.state in LASTING


def since(verdict: Activity, remembered: Mapping[str, Any], now: float) -> float:
    """Return since when a state holds that was looked at, by what is remembered of earlier looks."""
    is_same = (remembered["state"], remembered["waiting_for"]) == (verdict.state, verdict.waiting_for)
    is_whole = abs(now - remembered["seen"]) <= LONGEST_GAP_SECONDS
    return min(verdict.at, remembered["since"]) if is_same and is_whole else verdict.at


def _decide(known: list[Evidence], now: float) -> Activity:
    process, screen = _of(known, "process"), _of(known, "screen")
    if process and process.state == EXITED:
        return _verdict(process, "a dead process has ended, whatever else is said")
    dialog = (screen.waiting_for or "").partition(",")[0] if screen else ""
    if screen and dialog in SILENT_DIALOGS:
        return _verdict(screen, f"the screen shows its {dialog} dialog, of which no hook speaks")
    speaking = [one for one in known if one.source != "process"]
    if len(speaking) > 1:
        speaking.sort(key=lambda one: SOURCES.index(one.source))
    words = [one for one in speaking if one.source not in LOOKS]
    stated = _of(known, "state-file")
    newest = stated.at if stated else 0.0
    is_asked = any(one.state == WAITING for one in speaking if one.source in LOOKS)
    # A record is only written at times; a dialog that is seen now is newer than whatever it says.
    heard = [one for one in words if one.source == "hook" or not is_asked]
    fresh = [one for one in heard if now - one.at <= FRESH_SECONDS and one.at >= newest]
    if fresh:
        return _verdict(fresh[0], f"{fresh[0].source} spoke within {FRESH_SECONDS:g} s")
    look = next((one for source in LOOKS if (one := _of(known, source))), None)
    if look:
        return _by_look(look, speaking)
    if words:
        return _verdict(words[0], f"{words[0].source} is the strongest that speaks")
    if process:
        return _verdict(process, "nothing but the process speaks")
    return Activity(UNKNOWN, "none", now, "nothing is known")


def _by_look(look: Evidence, speaking: list[Evidence]) -> Activity:
    """Return what a look says, with the age and the detail of the others that say the same."""
    agreeing = [one for one in speaking if one.state == look.state]
    waiting_for = next((one.waiting_for for one in (look, *agreeing) if one.waiting_for), None)
    word = next((one for one in agreeing if one.source not in LOOKS), None)
    if word:
        return Activity(
            word.state, word.source, word.at, f"{word.source}, and the {look.source} agrees", waiting_for
        )
    rule = f"the {look.source} was looked at now; what else is said is older"
    return Activity(look.state, look.source, look.at, rule, waiting_for)


def _of(known: list[Evidence], source: str) -> Evidence | None:
    for one in known:
        if one.source == source:
            return one
    return None


def _verdict(one: Evidence, rule: str) -> Activity:
    return Activity(one.state, one.source, one.at, rule, one.waiting_for)


def is_asking(evidence: Sequence[Evidence]) -> bool:
    """Tell whether a look shows that the agent asks: a hook that says otherwise may be a moment behind."""
    return any(one.state == WAITING and one.source in LOOKS for one in evidence)


def needs_screen(evidence: Sequence[Evidence], now: float) -> bool:
    """Tell whether a cheap listing must look at the screen: nobody speaks, or did and was not at rest."""
    speaking = [one for one in evidence if one.source not in ("process", "screen") and one.state != UNKNOWN]
    if any(one.state == EXITED for one in evidence):
        return False
    newest = max(speaking, key=lambda one: one.at, default=None)
    if newest is None or newest.source == "transcript":
        return True
    is_at_rest = newest.state == IDLE and newest.detail not in _FAILURES
    return not is_at_rest and now - newest.at > FRESH_SECONDS
