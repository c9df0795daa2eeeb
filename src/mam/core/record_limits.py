"""How long a text of the database may be, and how large a number: one place for those who write and check.

A row of somebody else is left out if it is beyond these limits (`checked_copy`). So verbs refuse what is
beyond them, or mam would throw away at a restore what it has recorded itself. Pure.
"""

from __future__ import annotations

from mam.core.errors import InvalidPrompt, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST_TEXT, LONGEST_WORD = 8 << 20, 4096
LARGEST_NUMBER, LAST_TIME = 2**53, 253402300800
# Columns that hold long texts; the others hold a word, a name or a sentence.
LONG = (
    *(
        "text",
        "prompt",
        "payload",
        "body",
        "data",
        "detail",
        "result",
        "summary",
        "metadata",
        "line",
        "typed",
    ),
    *("looked", "added", "reason", "error", "skills", "title"),
)


def is_text(column: str, value: object) -> bool:
    """Tell whether a column of text may have a value."""
    longest = LONGEST_TEXT if column in LONG else LONGEST_WORD
    return isinstance(value, str) and "\0" not in value and len(value) <= longest


def is_number(column: str, value: float) -> bool:
    """Tell whether a column of numbers may have a number."""
    if column == "at" or column.endswith(("_at", "_expires")):
        return 0 <= value < LAST_TIME
    # Infinity is no smaller, and NaN neither.
    return abs(value) < LARGEST_NUMBER


def check(**columns: Any) -> None:
    """Raise Usage for a value that a column may not have; InvalidPrompt for a text."""
    for column, value in columns.items():
        if isinstance(value, str):
            _check_text(column, value)
        elif isinstance(value, (int, float)) and not is_number(column, value):
            raise Usage(f"the {_noun(column)} is out of range", hint="use a number that is nearer to zero")


def _check_text(column: str, value: str) -> None:
    if is_text(column, value):
        return
    noun = _noun(column)
    kind = InvalidPrompt if column in LONG else Usage
    if "\0" in value:
        raise kind(f"the {noun} contains a NUL character", hint="remove it from the text")
    if column in LONG:
        raise kind(f"the {noun} is longer than 8 MB", hint="write a short text that names a file")
    raise kind(f"the {noun} is longer than {LONGEST_WORD} characters", hint="use a shorter one")


def _noun(column: str) -> str:
    return {"body": "text", "payload": "text", "created_by": "author"}.get(column, column.replace("_", " "))


def sentence(text: str) -> str:
    """Return a sentence of mam's own so that it can be recorded: what it quotes may be anything."""
    return text.replace("\0", "\ufffd")[:LONGEST_TEXT]
