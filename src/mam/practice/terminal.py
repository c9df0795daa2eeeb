"""The terminal itself: raw mode, size, bytes in and out."""

from __future__ import annotations

import os
import termios
from select import select

PASTE_ON = "\x1b[?2004h"
PASTE_OFF = "\x1b[?2004l"
_READ_BYTES = 65536
_STEP = 0.1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Closed(Exception):
    """The terminal is gone."""


class Terminal:
    """Standard input and output, both a terminal."""

    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        self.input = 0
        self._is_stopping = is_stopping
        self._output = _own_output(1)
        self._saved = termios.tcgetattr(self.input)

    def raw(self) -> None:
        """Set raw mode: no echo, no signals from keys, no translation. Keys typed earlier are kept."""
        try:
            mode = termios.tcgetattr(self.input)
            mode[0] &= ~(termios.BRKINT | termios.ICRNL | termios.INLCR | termios.ISTRIP | termios.IXON)
            mode[1] |= termios.OPOST | termios.ONLCR
            mode[2] |= termios.CS8
            mode[3] &= ~(termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG)
            mode[6][termios.VMIN] = 1
            mode[6][termios.VTIME] = 0
            termios.tcsetattr(self.input, termios.TCSANOW, mode)
        except termios.error:
            raise Closed from None

    def size(self) -> tuple[int, int]:
        """Return columns and rows; a terminal that does not know them counts as 80x24."""
        try:
            columns, rows = os.get_terminal_size(self._output)
        except OSError:
            columns = rows = 0
        return columns or 80, rows or 24

    def read(self) -> bytes:
        """Return the typed bytes; raise Closed at the end of input."""
        try:
            data = os.read(self.input, _READ_BYTES)
        except OSError:
            data = b""
        if not data:
            raise Closed
        return data

    def has_input(self) -> bool:
        """Tell whether more input is available."""
        return bool(select([self.input], [], [], 0)[0])

    def write(self, text: str) -> None:
        """Write text; give up on a blocked terminal once the agent is told to stop."""
        data = memoryview(text.encode("utf-8", "replace"))
        while data:
            try:
                data = data[os.write(self._output, data) :]
            except BlockingIOError:
                if not select([], [self._output], [], _STEP)[1] and self._is_stopping():
                    return
            except OSError:
                raise Closed from None

    def _give_up_soon(self) -> None:
        """From now on discard what the terminal does not take at once, because the agent ends."""
        self._is_stopping = lambda: True

    def restore(self, farewell: str) -> None:
        """Write a last text, and restore the terminal's mode."""
        self._give_up_soon()
        try:
            self.write(farewell + PASTE_OFF + "\x1b[?7h\x1b[?25h\x1b]2;\x07")
            termios.tcsetattr(self.input, termios.TCSANOW, self._saved)
        except (Closed, termios.error):
            pass


def _own_output(descriptor: int) -> int:
    """Return a new descriptor of the same terminal.

    O_NONBLOCK belongs to the open file, which other processes share, so it must not be set on the old one.
    """
    try:
        return os.open(os.ttyname(descriptor), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return descriptor
