"""What a monitor writes on its card, and what it reads there. Nothing is looked at here."""

from __future__ import annotations

from mam.core.safe_text import one_line
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

AUTHOR = "mam-monitor"
# What the next worker of a card is shown of a comment.
LONGEST_COMMENT = 2048
_LONGEST_LINE = 500
_STOP = ("stop", "stop monitoring")
_GO_ON, _DONE = "continue", "done"
# Hermes ends a worker at its cap; ours ends by itself before that, so that the card says why.
_LEAST_MARGIN, _MOST_MARGIN = 1.0, 60.0


def says_stop(author: str, body: str) -> bool:
    """Tell whether a comment asks for the end: somebody else's, with a line that says just that."""
    return author != AUTHOR and any(
        " ".join(line.split()).rstrip(".!").casefold() in _STOP for line in body.splitlines()
    )


def line_of(drift: dict[str, Any], at: float) -> str:
    """Return a difference as a line of a comment."""
    kept = "" if drift.get("written") else " (not written)"
    return one_line(f"{stamp(at)} {drift.get('class')}: {drift.get('message')}{kept}", _LONGEST_LINE)


def comments_of(lines: Iterable[str]) -> list[str]:
    """Return the comments that hold these lines: as few as possible, none longer than a comment may be."""
    comments: list[str] = []
    for line in lines:
        joined = f"{comments[-1]}\n{line}" if comments else ""
        if joined and len(joined.encode()) <= LONGEST_COMMENT:
            comments[-1] = joined
        else:
            comments.append(line)
    return comments


def note_of(drifts: int, last: float | None, running: int) -> str:
    """Return what a heartbeat says: numbers, and when the last difference was."""
    when = f"last at {stamp(last)}" if last is not None else "none so far"
    return f"alive, {drifts} {'drift' if drifts == 1 else 'drifts'}, {when}; {running} running"


def verdict_of(status: int | None, words: str) -> str:
    """Return what a judge means: `done`, or `continue` for anything that is not clearly that.

    It fails open: a judge that crashed, hung or rambled ends nothing.
    """
    lines = words.strip().splitlines()
    said = lines[-1].strip().split(None, 1)[0].rstrip(".:,!").casefold() if status == 0 and lines else ""
    return _DONE if said == _DONE else _GO_ON


def is_done(verdict: str) -> bool:
    """Tell whether monitoring is not wanted any more."""
    return verdict == _DONE


def ends_at(started: float, cap: float) -> float:
    """Return when a run with a cap ends by itself: some time before it would be ended."""
    return started + cap - min(max(cap * 0.1, _LEAST_MARGIN), _MOST_MARGIN)
