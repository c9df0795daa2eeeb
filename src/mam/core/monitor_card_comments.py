"""Comments on the card of a monitor: the text that mam writes, and what it understands of others'. Pure."""

from __future__ import annotations

import re

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
_LONGEST_REQUEST = 200
ANSWER = (
    "The monitoring goes on. To end it, write a comment with a line that asks for just that:"
    " `stop`, or `stop monitoring`."
)
# A line asks to stop if nothing else is in it: a condition, a time or a negation changes the meaning.
_BEFORE = (
    "please|pls|kindly|ok|okay|hi|hey|hello|thanks|thank you|thx|just|now|then|so|and|enough|-|"
    "you can|you may|you could|can you|could you|would you|mam|@?mam-monitor|monitor"
)
_AFTER = (
    "please|pls|thanks|thank you|thx|now|right now|right away|at once|immediately|asap|here|then|ok|okay|-|"
    "for now|for today|mam|@?mam-monitor"
)
_OBJECT = "(?: (?:the |this |your |all )?(?:monitoring|monitor|watching))?"
_ASKS_TO_STOP = re.compile(rf"(?:(?:{_BEFORE}) )*stop{_OBJECT}(?: (?:{_AFTER}))*")
_POLITE_QUESTION = re.compile(r"\b(?:can|could|would) you\b")
_MENTIONS_STOP = re.compile(
    r"(?<![\w-])stop(?:s|ped|ping)?(?![\w-])"
    r"|\b(?:end|halt|quit|cancel|abort|finish|terminate|shut)\b.*\bmonitor"
)
_NEGATION = re.compile(r"\b(?:not|never|no|dont|don't|doesn't|cannot|can't|won't|without)\b.*\bstop")
_PUNCTUATION = re.compile(r"[.,!;:\N{HORIZONTAL ELLIPSIS}]")
_GO_ON, _DONE = "continue", "done"
# Hermes kills a worker at its time cap. mam ends its monitor before that, so that the card says why.
_LEAST_MARGIN, _MOST_MARGIN = 1.0, 60.0


def says_stop(author: str, body: str) -> bool:
    """Tell whether somebody else's comment has a line that plainly asks to stop the monitoring."""
    return author != AUTHOR and any(_asks_to_stop(line) for line in body.splitlines())


def is_unclear(author: str, body: str) -> bool:
    """Tell whether somebody else's comment speaks of stopping, and asks neither for it nor against it."""
    if author == AUTHOR or says_stop(author, body):
        return False
    lines = [_plain(line) for line in body.splitlines()]
    return any(_MENTIONS_STOP.search(line) and not _NEGATION.search(line) for line in lines)


def _asks_to_stop(line: str) -> bool:
    text = _plain(line)
    if text.endswith("?") and not _POLITE_QUESTION.search(text):
        return False
    return _ASKS_TO_STOP.fullmatch(text.rstrip("? ")) is not None


def _plain(line: str) -> str:
    """Return a line in small letters, without punctuation and signs.

    Return an empty text for a quoted line, and for a line that is too long to be a plain request.
    """
    if len(line) > _LONGEST_REQUEST:
        return ""
    text = _PUNCTUATION.sub(" ", line.casefold().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    letters = "".join(letter for letter in text if letter.isascii() or letter.isalnum())
    return "" if letters.lstrip().startswith(">") else " ".join(letters.split())


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
