"""Lays out the draft in the input box: rows of text, and the position of the cursor."""

from __future__ import annotations

from .editor import Editor
from .text_width import cells, char_cells, clean, clean_char, shorten

PROMPT = "❯ "
INDENT = "  "
MOST_ROWS = 8
#: A typed draft may be huge, because only pastes are folded; only the text near the cursor is laid out.
_NEAR = 4096


class SuggestedRow(str):
    """The row of an empty input box that shows a suggestion after the prompt."""

    __slots__ = ()


def suggested_row(suggestion: str, columns: int) -> SuggestedRow:
    """Return the row of an empty input box with a suggestion, which is not part of the draft."""
    return SuggestedRow(PROMPT + shorten(clean(suggestion), columns - cells(PROMPT) - 1))


def box_rows(editor: Editor, columns: int) -> tuple[list[str], tuple[int, int]]:
    """Return the rows between the rules, and row and column of the cursor.

    One column stays free, so that the cursor fits behind a full row.
    """
    room = max(columns - cells(PROMPT) - 1, 2)
    rows, row, column = _lay_out(editor, room)
    first = max(0, min(len(rows) - MOST_ROWS, row))
    visible = rows[first : first + MOST_ROWS]
    lead = [PROMPT if index == 0 else INDENT for index in range(len(visible))]
    return [a + b for a, b in zip(lead, visible, strict=True)], (row - first, column + cells(PROMPT))


def _lay_out(editor: Editor, room: int) -> tuple[list[str], int, int]:
    start = max(0, editor.cursor - _NEAR)
    end = min(len(editor.text), editor.cursor + _NEAR)
    rows: list[str] = []
    row = ""
    used = 0
    place = (0, 0)
    joined = False
    for index in range(start, end):
        if index == editor.cursor:
            place = (len(rows), used)
        char = editor.text[index]
        if char == "\n":
            rows.append(row)
            row, used, joined = "", 0, False
            continue
        display = char if char.isprintable() else _printable(editor, char)
        for part in display:
            width = 0 if joined else char_cells(part)
            if used + width > room:
                rows.append(row)
                row, used = "", 0
            row += part
            used += width
            joined = part == "\u200d"
    if editor.cursor == end:
        place = (len(rows), used)
    return [*rows, row], *place


def _printable(editor: Editor, char: str) -> str:
    label = editor.display_of(char)
    return label if label != char else clean_char(char)
