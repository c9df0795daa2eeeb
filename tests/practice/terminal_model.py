"""A terminal small enough to be believed: what `Screen` sends ends up in rows, a cursor and a scrollback."""

from __future__ import annotations

import re

from mam.practice.text_width import char_cells

_TOKEN = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|(\r)|(\n)|([^\x1b\r\n])")


class TerminalModel:
    """Prints, moves, erases and scrolls; automatic wrapping is not modelled, for it must be off."""

    def __init__(self, columns: int, height: int) -> None:
        self.columns = columns
        self.height = height
        self.scrollback: list[str] = []
        self.rows = [""] * height
        self.row = 0
        self.column = 0
        self.modes: dict[str, bool] = {}

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            match = _TOKEN.match(text, at)
            assert match, f"not understood: {text[at : at + 20]!r}"
            at = match.end()
            private, number, final, cr, lf, char = match.groups()
            if cr:
                self.column = 0
            elif lf:
                self._line_feed()
            elif char:
                self._print(char)
            elif private:
                self.modes[number] = final == "h"
            elif final != "m":
                self._control(final, int(number or 1 if final in "ABC" else number or 0))

    def _control(self, final: str, number: int) -> None:
        if final == "A":
            self.row = max(0, self.row - number)
        elif final == "B":
            self.row = min(self.height - 1, self.row + number)
        elif final == "C":
            self.column = min(self.columns - 1, self.column + number)
        elif final == "K":
            assert number == 2
            self.rows[self.row] = ""
        elif final == "J":
            self.rows[self.row] = self.rows[self.row][: self.column]
            self.rows[self.row + 1 :] = [""] * (self.height - self.row - 1)
        else:
            raise AssertionError(f"unexpected sequence ending in {final}")

    def _print(self, char: str) -> None:
        assert self.modes.get("7") is False, "printed while automatic wrapping was on"
        assert self.column == sum(map(char_cells, self.rows[self.row])), "printed over something"
        assert self.column + char_cells(char) <= self.columns, "printed beyond the edge"
        self.rows[self.row] += char
        self.column += char_cells(char)

    def _line_feed(self) -> None:
        if self.row == self.height - 1:
            self.scrollback.append(self.rows.pop(0))
            self.rows.append("")
        else:
            self.row += 1

    def everything(self) -> list[str]:
        """Return scrollback and screen, without the empty rows below."""
        rows = self.scrollback + self.rows
        while rows and not rows[-1]:
            rows.pop()
        return rows
