"""Finding out when a usage limit of Codex ends, by its message: a time of the day, or a date and a time."""

from __future__ import annotations

import re
import time

_RESET = re.compile(r"\b[Tt]ry again (?:at|in) (.+?)\.?\Z")
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b")
_MINUTE = 60.0
# A screen does not show on which day Codex wrote the message. The shorter limit lasts five hours: if a time
# of the day is further ahead, the message may as well be of the day before.
_LONGEST_WAIT = 5 * 3600.0


def named_end(message: str) -> str:
    """Return the end of a limit as its message names it; empty if it names none."""
    match = _RESET.search(message)
    return match[1] if match else ""


def end_time(end: str, message_at: float) -> float | None:
    """Return the end of the minute that a message names; None if it names no time."""
    day = time.strftime("%Y-%m-%d", time.localtime(message_at))
    for text, form in ((f"{day} {end}", "%Y-%m-%d %I:%M %p"), (_ORDINAL.sub("", end), "%b %d, %Y %I:%M %p")):
        try:
            return time.mktime(time.strptime(text, form)) + _MINUTE
        except (ValueError, OverflowError):
            continue
    return None


def is_on(end: str, now: float, message_at: float | None = None) -> bool:
    """Tell whether a limit surely still holds; without the time of its message, a time of day means today."""
    until = end_time(end, now if message_at is None else message_at)
    if until is None:
        return False
    is_of_today = message_at is not None or "," in end or until - now <= _LONGEST_WAIT + _MINUTE
    return now < until and is_of_today
