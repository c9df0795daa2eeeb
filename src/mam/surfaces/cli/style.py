"""Colours and width of a terminal; a file or a pipe has neither."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}


class Paint:
    """The colours and the width of one stream: `paint(text, "red")` returns the coloured text.

    Without colours it returns the plain text. `width` is None if lines are not cut. `wraps` tells that a line
    may be longer than the terminal is wide, and so take several of its lines.
    """

    __slots__ = ("colours", "width", "wraps")

    def __init__(self, stream: Any) -> None:
        """Find out what the stream and the environment allow."""
        on_terminal = is_terminal(stream)
        self.colours = (
            on_terminal
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM") not in (None, "", "dumb")
        )
        self.width = _columns(stream) if on_terminal else None
        self.wraps = True

    def __call__(self, text: str, style: str | None) -> str:
        """Return the text in a style; styles may be joined with a space."""
        if not style or not self.colours:
            return text
        codes = ";".join(_CODES[name] for name in style.split())
        return f"\x1b[{codes}m{text}\x1b[0m"


def is_terminal(stream: Any) -> bool:
    """Tell whether the stream is a terminal."""
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):
        return False


def _columns(stream: Any) -> int | None:
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None
