"""Paints without an alternate screen: the conversation scrolls away above a live region.

Rows of the conversation are written once and belong to the scrollback. The rows of the live region below
them are rewritten in place, if possible only those that changed. So a reader of the screen rarely sees a
half-painted one.
"""

from __future__ import annotations

from .input_box import PROMPT, SuggestedRow
from .text_width import cells

_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
_COLOURS = {
    "red": "\x1b[31m",
    "blue": "\x1b[34m",
    "green": "\x1b[32m",
    "yellow": "\x1b[33m",
    "purple": "\x1b[35m",
    "orange": "\x1b[38;5;208m",
    "pink": "\x1b[38;5;212m",
    "cyan": "\x1b[36m",
    "default": "",
}
COLOURS = tuple(_COLOURS)
#: Automatic wrapping is off while painting: a character that is wider than expected must not shift the rows
#: below it.
_BEGIN = "\x1b[?25l\x1b[?7l"
_END = "\x1b[?7h"
#: This erases the whole row: tmux remembers the old length of a row that is erased in part, and wraps the row
#: when the window becomes narrower.
_ERASE = "\x1b[2K"
_SHOW_CURSOR = "\x1b[?25h"


class Screen:
    """Computes the text for the terminal; it sends nothing itself."""

    def __init__(self, *, colours: bool = True) -> None:
        self.colours = colours
        self.edge = "default"
        self._live: list[str] = []
        self._row = 0
        self._column = 0
        self._columns = 0
        self._edge = ""
        self._hidden = False
        self._is_valid = True
        self._title = ""

    def paint(self, above: list[str], live: list[str], cursor: tuple[int, int] | None, columns: int) -> str:
        """Return the text that adds the rows `above` to the conversation and shows `live` below them.

        `cursor` is row and column within `live`; None hides it. The text is empty if the screen is up to
        date.
        """
        row, column = cursor or (len(live) - 1, 0)
        is_shaped_alike = not above and columns == self._columns and len(live) == len(self._live)
        if self._is_valid and is_shaped_alike and self._edge == self.edge:
            body, at = self._changed_rows(live)
            is_placed = (row, column, cursor is None) == (self._row, self._column, self._hidden)
            if is_placed and not body:
                return ""
        else:
            body = self._to_top(columns) + self._all_rows(above, live, columns)
            at = len(live) - 1
        self._live, self._columns, self._edge = list(live), columns, self.edge
        self._row, self._column, self._hidden = row, column, cursor is None
        self._is_valid = True
        place = _move(row - at) + "\r" + (f"\x1b[{column}C" if column else "")
        return _BEGIN + body + place + _END + ("" if cursor is None else _SHOW_CURSOR)

    def invalidate(self) -> None:
        """Make the next paint send every row: a terminal that gets another height may lose rows.

        tmux drops rows below the cursor, also if the terminal then gets its old height back.
        """
        self._is_valid = False

    def title(self, text: str) -> str:
        """Return the text that sets the pane's title; empty if the title is unchanged."""
        if text == self._title:
            return ""
        self._title = text
        return f"\x1b]2;{text}\x07"

    def leave(self, above: list[str], columns: int) -> str:
        """Return the text that removes the live region and puts the cursor below the conversation."""
        text = _BEGIN + self._to_top(columns) + "\x1b[J"
        text += "".join(self._coloured(row) + "\r\n" for row in above)
        self._live, self._row, self._columns = [], 0, columns
        return text + _END + _SHOW_CURSOR

    def forget(self) -> str:
        """Return the text that empties the screen; the next paint begins at its top."""
        self._live, self._row, self._column = [], 0, 0
        return "\x1b[2J\x1b[H"

    def _to_top(self, columns: int) -> str:
        """Return the text that moves the cursor to the first row of the live region.

        A terminal that became narrower has wrapped the old rows, so each may take several rows.
        """
        up = sum(max(1, -(-cells(row) // columns)) for row in self._live[: self._row])
        up += self._column // columns
        return (f"\x1b[{up}A" if up else "") + "\r"

    def _all_rows(self, above: list[str], live: list[str], columns: int) -> str:
        text = "\r\n".join(_ERASE + self._coloured(row) for row in (*above, *live))
        # After a full row the cursor of some terminals is still on the last cell, and would erase it.
        return text + ("\x1b[J" if cells(live[-1]) < columns else "")

    def _changed_rows(self, live: list[str]) -> tuple[str, int]:
        """Return the changed rows with the moves between them, and the row they end on."""
        text = ""
        at = self._row
        for index, (old, new) in enumerate(zip(self._live, live, strict=True)):
            # A draft may have the words of the suggestion that was there before.
            if old != new or type(old) is not type(new):
                text += _move(index - at) + "\r" + _ERASE + self._coloured(new)
                at = index
        return text, at

    def _coloured(self, row: str) -> str:
        """Colour a row by the mark it begins with."""
        if not self.colours or not row:
            return row
        if isinstance(row, SuggestedRow):
            return PROMPT + _DIM + row.removeprefix(PROMPT) + _RESET
        edge = _COLOURS[self.edge]
        if row.startswith("──"):
            return (edge or _DIM) + row + _RESET
        if row.startswith("● "):
            return "\x1b[32m●" + _RESET + row[1:]
        if row.startswith(("  ⎿ ", "  queued: ", "  ? for help")):
            return _DIM + row + _RESET
        if row[0] in "·✢✳✶✻✽":
            return "\x1b[38;5;173m" + row + _RESET
        if row.startswith(" ❯ "):
            return "\x1b[36m" + row + _RESET
        return row


def _move(rows: int) -> str:
    if not rows:
        return ""
    return f"\x1b[{rows}B" if rows > 0 else f"\x1b[{-rows}A"
