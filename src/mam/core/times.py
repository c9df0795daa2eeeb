"""Points in time as the registry writes them, and durations as people write them."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import timedelta

# Compiled at the first use, so that the start of every command does not pay for it.
_SPAN = r"(\d+(?:\.\d+)?)\s*(s|m|h|d|w)?\Z"
FORMAT = "%Y-%m-%dT%H:%M:%SZ"
LAST = 253402300799  # the end of the year 9999
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def stamp(epoch: float) -> str:
    """Return a UTC time as the registry writes it, to the second, clamped to the years 1970 to 9999."""
    from datetime import UTC, datetime

    epoch = min(max(epoch, 0), LAST)
    return datetime.fromtimestamp(int(epoch), UTC).strftime(FORMAT)


def parse_stamp(text: object) -> float | None:
    """Return the time of a stamp of `stamp` or of the original system; None if the text is not a time."""
    from datetime import UTC, datetime

    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def parse_span(text: str) -> timedelta:
    """Return the duration of `90`, `30s`, `5m`, `2h`, `7d` or `1w`; a bare number is in seconds."""
    import re
    from datetime import timedelta

    match = re.match(_SPAN, text.strip().lower())
    if not match:
        raise Usage(f"{text!r} is not a duration", hint="write 30s, 5m, 2h, 7d or 1w")
    return timedelta(seconds=float(match[1]) * _UNITS[match[2] or "s"])


def short_age(seconds: float) -> str:
    """Return an age in the largest unit that fits: 8s, 3m, 2h, 5d."""
    whole = max(0, int(seconds))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"
