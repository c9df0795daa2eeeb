"""The progress line: what a long verb is doing, in one line that disappears again."""

from __future__ import annotations

import os
import sys

from mam.core.safe_text import one_line
from mam.surfaces.cli.style import Paint, is_terminal
from mam.surfaces.cli.table import cut

_CLEAR = "\r\x1b[K"
_AFTER = "mam ls shows the sessions"


class Progress:
    """A transient line on stderr, if stderr is a terminal. Warnings are always printed, and stay."""

    __slots__ = ("_is_live", "_shown", "after", "last")

    def __init__(self) -> None:
        """Find out whether stderr is a terminal that can erase a line."""
        self._is_live = is_terminal(sys.stderr) and os.environ.get("TERM") not in (None, "", "dumb")
        self._shown = False
        self.last = ""
        self.after = _AFTER

    def show(self, text: str, after: str = _AFTER) -> None:
        """Replace the line by a text; `after` tells a person who interrupts the verb what to do next."""
        text = one_line(text, 500)
        if text.startswith("warning:"):
            self.clear()
            self._write(f"mam: {text}\n")
            return
        self.last, self.after = text, after
        if self._is_live:
            paint = Paint(sys.stderr)
            self._shown = True
            self._write(_CLEAR + paint(cut(f"{text} …", paint.width and paint.width - 1), "dim"))

    def clear(self) -> None:
        """Erase the line."""
        if self._shown:
            self._shown = False
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
