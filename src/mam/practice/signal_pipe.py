"""Turns signals into bytes in a pipe, so that the loop can wait for them with `select`."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

ENDINGS: dict[int, int] = {signal.SIGTERM: 143, signal.SIGHUP: 129, signal.SIGINT: 0}
_NOTED = (signal.SIGWINCH, signal.SIGCHLD, signal.SIGCONT)


class Signals:
    """The received signals, in order."""

    def __init__(self, *, ignore_endings: bool) -> None:
        self.pipe, writing = os.pipe()
        os.set_blocking(self.pipe, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._received: list[int] = []
        for number in (*ENDINGS, *_NOTED):
            ignored = ignore_endings and number in (signal.SIGTERM, signal.SIGHUP)
            signal.signal(number, signal.SIG_IGN if ignored else _note)

    def take(self) -> list[int]:
        """Return the signals since the last call."""
        self._collect()
        received, self._received = self._received, []
        return received

    def is_stopping(self) -> bool:
        """Tell whether a signal that ends the agent was received and not taken yet."""
        self._collect()
        return any(number in ENDINGS for number in self._received)

    @staticmethod
    def ignore_hangups() -> None:
        """Ignore SIGHUP in this process, and in hooks that it starts from now on.

        tmux sends SIGHUP more than once when it kills a pane, and a hook would die of it before it has left
        the process group of the terminal.
        """
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def _collect(self) -> None:
        try:
            self._received += os.read(self.pipe, 4096)
        except BlockingIOError:
            return


def _note(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the wake-up pipe has the signal."""
