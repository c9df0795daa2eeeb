"""When a limit of Codex ends, by the message about it: a time of the same day, or a day and a time."""

from __future__ import annotations

import re
import time

_RESET = re.compile(r"\b[Tt]ry again (?:at|in) (.+?)\.?\Z")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_MINUTE = 60.0
# A screen does not tell the day on which it was written. Its shorter limit has so many hours: a time of day
# further ahead than that is as likely that of a day before.
_LONGEST_WAIT = 5 * 3600.0


def named_end(said: str) -> str:
    """Return when a limit ends, as the message about it says; empty where it does not."""
    found = _RESET.search(said)
    return found[1] if found else ""


def ends(end: str, said_at: float) -> float | None:
    """Return when the minute that a message of that time names is over; None for what is no time."""
    day = time.strftime("%Y-%m-%d", time.localtime(said_at))
    for text, form in ((f"{day} {end}", "%Y-%m-%d %I:%M %p"), (_ORDINAL.sub("", end), "%b %d, %Y %I:%M %p")):
        try:
            return time.mktime(time.strptime(text, form)) + _MINUTE
        except (ValueError, OverflowError):
            continue
    return None


def is_on(end: str, now: float, said_at: float | None = None) -> bool:
    """Tell whether a limit is surely still on; without the time of its message a time of day is today's."""
    until = ends(end, now if said_at is None else said_at)
    if until is None:
        return False
    is_of_today = said_at is not None or "," in end or until - now <= _LONGEST_WAIT + _MINUTE
    return now < until and is_of_today
