"""Reading files with one JSON object per line, which may be huge, damaged, and still growing."""

from __future__ import annotations

import os

from mam.adapters.system import json_text as json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# The longest prompt has 1 MB, and JSON may need six bytes for one of its bytes.
LONGEST_LINE = 8 * 1024 * 1024
# A larger number is not plausible: as a time it is after the year 5000, and no agent counts so many tokens.
_LATEST_MS = 1e14
_MOST = 2**53


def is_uuid(text: str) -> bool:
    """Tell whether a text is a UUID in lower case. Every listing asks, so no pattern is compiled for it."""
    return (
        len(text) == 36
        and text[8] == text[13] == text[18] == text[23] == "-"
        and len(digits := text.replace("-", "")) == 32
        and not digits.strip("0123456789abcdef")
    )


def parse(line: object) -> dict[str, Any]:
    """Return the object of a line; an empty one if the line is damaged."""
    try:
        entry = json.loads(line) if isinstance(line, (bytes, str)) else None
    except (ValueError, RecursionError):
        return {}
    return entry if isinstance(entry, dict) else {}


def tail(path: str, most: int) -> tuple[list[bytes], bool]:
    """Return the complete lines in the last bytes of a file, and whether they are all. Raises OSError."""
    from mam.adapters.agents.open_regular import open_regular_file

    with open_regular_file(path) as file:
        since = max(0, file.seek(0, os.SEEK_END) - most)
        file.seek(since)
        lines = file.read(most).split(b"\n")[:-1]
    return (lines[1:], False) if since else (lines, True)


def lines_since(path: str, since: int) -> Iterator[bytes]:
    """Yield the complete lines beyond `since` bytes; stop at one longer than any prompt. Raises OSError."""
    from mam.adapters.agents.open_regular import open_regular_file

    with open_regular_file(path) as file:
        file.seek(since)
        while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
            yield line


def epoch(text: object) -> float | None:
    """Return an ISO time stamp as seconds; None for anything else."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp() if isinstance(text, str) else None
    except (ValueError, OverflowError, OSError):
        return None


def seconds(milliseconds: object) -> float | None:
    """Return milliseconds as seconds; None for anything that is not a time."""
    if isinstance(milliseconds, (int, float)) and 0 < milliseconds < _LATEST_MS:
        return milliseconds / 1000
    return None


def count(value: object) -> int | None:
    """Return a number of tokens; None for anything else."""
    return value if type(value) is int and 0 <= value < _MOST else None


def recorded(values: dict[str, Any], name: str) -> int:
    """Return a recorded number of tokens, 0 where there is none. Raises ValueError for anything else."""
    value = values.get(name)
    number = 0 if value is None else count(value)
    if number is None:
        raise ValueError(f"{name} is no number of tokens")
    return number
