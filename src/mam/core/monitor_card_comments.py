"""Comments on the card of a monitor: the text that mam writes, and what it understands of others'. Pure."""

from __future__ import annotations

from mam.core.safe_text import one_line
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

AUTHOR = "mam-monitor"
# Hermes shows at most this many bytes of a comment to the next worker of a card.
LONGEST_COMMENT = 2048
_LONGEST_LINE = 500
_STOP = ("stop", "stop monitoring")
_GO_ON, _DONE = "continue", "done"
# Hermes kills a worker at its time cap. mam ends its monitor before that, so that the card says why.
_LEAST_MARGIN, _MOST_MARGIN = 1.0, 60.0


def says_stop(author: str, body: str) -> bool:
    """Tell whether somebody else's comment has a line that asks to stop, and nothing else in that line."""
    return author != AUTHOR and any(
        " ".join(line.split()).rstrip(".!").casefold() in _STOP for line in body.splitlines()
    )


def line_of(drift: dict[str, Any], at: float) -> str:
    """Return a drift as a line of a comment."""
    suffix = "" if drift.get("written") else " (not written)"
    return one_line(f"{stamp(at)} {drift.get('class')}: {drift.get('message')}{suffix}", _LONGEST_LINE)


def comments_of(lines: Iterable[str]) -> list[str]:
    """Return the lines joined into as few comments as possible, none longer than LONGEST_COMMENT."""
    comments: list[str] = []
    for line in lines:
        joined = f"{comments[-1]}\n{line}" if comments else ""
        if joined and len(joined.encode()) <= LONGEST_COMMENT:
            comments[-1] = joined
        else:
            comments.append(line)
    return comments


def note_of(drifts: int, last: float | None, running: int) -> str:
    """Return the text of a heartbeat: the numbers of drifts and sessions, and the time of the last drift."""
    last_time = f"last at {stamp(last)}" if last is not None else "none so far"
    return f"alive, {drifts} {'drift' if drifts == 1 else 'drifts'}, {last_time}; {running} running"


def verdict_of(status: int | None, output: str) -> str:
    """Return the verdict of a judge command: `done`, or `continue` for any other output.

    A judge that crashes, hangs or prints something else does not end the monitoring.
    """
    lines = output.strip().splitlines()
    verdict = lines[-1].strip().split(None, 1)[0].rstrip(".:,!").casefold() if status == 0 and lines else ""
    return _DONE if verdict == _DONE else _GO_ON


def is_done(verdict: str) -> bool:
    """Tell whether the verdict ends the monitoring."""
    return verdict == _DONE


def ends_at(started: float, cap: float) -> float:
    """Return when mam ends a run that has a time cap: a margin before Hermes would kill it."""
    return started + cap - min(max(cap * 0.1, _LEAST_MARGIN), _MOST_MARGIN)
