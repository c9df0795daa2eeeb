"""Collects the output of the agent as rows for the scrollback.

The last row of a streamed answer still grows, so it stays in the live region until it is full or the answer
ends.
"""

from __future__ import annotations

from .text_width import clean, clean_lines, wrap

USER = "❯ "
ANSWER = "● "
TOOL = "  ⎿ "
INTERRUPTED = "Interrupted · What should the agent do instead?"
#: The most lines and characters that are shown of an earlier turn after a resume.
_MOST = {"user": (8, 800), "assistant": (200, 20_000)}


class Output:
    """Collects rows for the current width of the terminal."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._rows: list[str] = []
        self._partial = ""
        self._lead = ""

    def fit(self, columns: int) -> None:
        """Set a new width; finished rows stay as they are."""
        if columns != self.columns:
            self.columns = columns
            if self._lead:
                self.stream("")

    def user(self, text: str) -> None:
        """Show a message of the person."""
        self._block(USER, clean_lines(text))

    def answer(self, text: str) -> None:
        """Show a whole answer at once."""
        self._block(ANSWER, clean_lines(text))

    def show_earlier(self, kind: str, text: str) -> None:
        """Show a turn of an earlier run, cut if it is long."""
        most_lines, most_chars = _MOST[kind]
        lines = clean_lines(text[:most_chars])[:most_lines]
        hidden_lines = text.count("\n") + 1 - len(lines)
        if hidden_lines or len(text) > most_chars:
            lines.append(f"… +{hidden_lines} lines" if hidden_lines else "…")
        self._block(USER if kind == "user" else ANSWER, lines)

    def tool(self, text: str) -> None:
        """Show the outcome of a tool below its line."""
        self.end()
        room = self.columns - len(TOOL) - 1
        rows = [row for line in clean_lines(text) for row in wrap(line, room)]
        self._rows += [(TOOL if index == 0 else "    ") + row for index, row in enumerate(rows)]

    def plain(self, rows: list[str]) -> None:
        """Add rows unchanged; the caller has cleaned them and fitted them to the width."""
        self.end()
        self._rows += rows

    def stream(self, text: str) -> None:
        """Append to the streamed answer; the first piece begins it."""
        if not self._lead:
            self._rows.append("")
            self._lead = ANSWER
        *lines, last = (self._partial + text).split("\n")
        for line in lines:
            self._commit(wrap(clean(line), self._room()))
        rows = wrap(clean(last), self._room())
        self._commit(rows[:-1])
        self._partial = rows[-1]

    def end(self) -> None:
        """End the streamed answer, if there is one."""
        if self._lead and self._partial:
            self._commit([self._partial])
        self._partial = self._lead = ""

    def growing(self) -> list[str]:
        """Return the row that still grows."""
        return [self._lead + self._partial] if self._lead else []

    def take(self) -> list[str]:
        """Return the finished rows, and forget them."""
        rows, self._rows = self._rows, []
        return rows

    def _room(self) -> int:
        return max(self.columns - len(ANSWER) - 1, 1)

    def _commit(self, rows: list[str]) -> None:
        for row in rows:
            self._rows.append((self._lead + row).rstrip())
            self._lead = "  "

    def _block(self, mark: str, lines: list[str]) -> None:
        self.end()
        self._rows.append("")
        self._lead = mark
        self._commit([row for line in lines for row in wrap(line, self._room())])
        self._lead = ""
