"""Turns stop signals into a readable handle, so that a resident stops between two steps of its loop."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from mam.adapters.system import load_adjusted_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds that the current step may still take after a stop signal, on a quiet machine: there the process ends
# within a second.
_PATIENCE = 0.6


class StopOverdue(BaseException):
    """The current step did not end in time after a stop signal.

    It interrupts a pass anywhere. That is safe, because a pass survives a crash anywhere.
    """


class StopHandle:
    """A handle that is readable after a stop signal."""

    __slots__ = ("_handle", "has_come")

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self.has_come = False

    def fileno(self) -> int:
        """Return the handle."""
        return self._handle

    def note(self, _number: int, _frame: object) -> None:
        """Note a stop signal."""
        self.has_come = True
        # A second signal does not extend the deadline.
        if not signal.getitimer(signal.ITIMER_REAL)[0]:
            signal.setitimer(signal.ITIMER_REAL, load_adjusted_clock.stretched(_PATIENCE))


def _on_alarm(_number: int, _frame: object) -> None:
    raise StopOverdue


@contextmanager
def stop_handle() -> Iterator[StopHandle]:
    """Yield a handle that is readable after a stop signal; restore the previous handlers at the end."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    stop = StopHandle(read)
    handlers = {
        signal.SIGALRM: _on_alarm,
        signal.SIGTERM: stop.note,
        signal.SIGINT: stop.note,
        signal.SIGHUP: stop.note,
    }
    # Before the handlers: each signal that one of them notes makes the handle readable.
    previous = signal.set_wakeup_fd(write)
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield stop
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.set_wakeup_fd(previous)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)
