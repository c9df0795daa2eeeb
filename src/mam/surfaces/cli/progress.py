"""What long work is doing, as one line that disappears again."""

from __future__ import annotations

import os
import sys

from mam.core.safe_text import one_line
from mam.surfaces.cli.style import Paint, is_terminal
from mam.surfaces.cli.table import cut

_CLEAR = "\r\x1b[K"
_AFTER = "mam ls shows what is there"


class Progress:
    """A transient line on stderr, where that is a terminal. A warning stays, and is shown anywhere."""

    __slots__ = ("_is_live", "_shown", "after", "last")

    def __init__(self) -> None:
        """Look at stderr once."""
        self._is_live = is_terminal(sys.stderr) and os.environ.get("TERM") not in (None, "", "dumb")
        self._shown = False
        self.last = ""
        self.after = _AFTER

    def tell(self, text: str, after: str = _AFTER) -> None:
        """Show one short sentence in place of the one before; `after` is for who cuts it short."""
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
        """Take the line away."""
        if self._shown:
            self._shown = False
            self._write(_CLEAR)

    def _write(self, text: str) -> None:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
