"""Reading a whole number that somebody else wrote: in a variable, a file, a screen or an answer."""

from __future__ import annotations

# More digits name no process, column or row, and SQLite takes no more. Python refuses to read thousands.
_MOST_DIGITS = 18


def whole_number(text: str) -> int | None:
    """Return the number that a text of ASCII digits names; None for any other text, or too many digits."""
    if not text.isascii() or not text.isdigit():
        return None
    digits = text.lstrip("0") or "0"
    return int(digits) if len(digits) <= _MOST_DIGITS else None
