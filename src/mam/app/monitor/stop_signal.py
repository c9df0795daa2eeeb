"""Turns stop signals into a readable handle, so that a resident stops between two steps of its loop."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Seconds that the current step may still take after a stop signal; the process ends within a second.
_PATIENCE = 0.6


class StopOverdue(BaseException):
    """The current step did not end in time after a stop signal.

    It interrupts a pass anywhere. That is safe, because a pass survives a crash anywhere.
    """


def _on_stop_signal(_number: int, _frame: object) -> None:
    # A second signal does not extend the deadline.
    if not signal.getitimer(signal.ITIMER_REAL)[0]:
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)


def _on_alarm(_number: int, _frame: object) -> None:
    raise StopOverdue


@contextmanager
def stop_handle() -> Iterator[int]:
    """Yield a handle that is readable after a stop signal; restore the previous handlers at the end."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    handlers = dict.fromkeys((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), _on_stop_signal)
    handlers[signal.SIGALRM] = _on_alarm
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    previous = signal.set_wakeup_fd(write)
    try:
        yield read
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.set_wakeup_fd(previous)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(read)
        os.close(write)
