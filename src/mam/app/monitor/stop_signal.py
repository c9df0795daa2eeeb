"""How a process that watches is told to stop: by a signal, which it hears between two things that it does."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Told to stop, what is under way may take so long; it ends within a second.
_PATIENCE = 0.6


class Overdue(BaseException):
    """Told to stop while something does not answer. A pass may be cut anywhere, as by a crash."""


def _told(_number: int, _frame: object) -> None:
    # Said again it does not last longer.
    if not signal.getitimer(signal.ITIMER_REAL)[0]:
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)


def _overdue(_number: int, _frame: object) -> None:
    raise Overdue


@contextmanager
def told_to_stop() -> Iterator[int]:
    """Give a descriptor that is readable once somebody said stop; what was set before is put back."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    handlers = dict.fromkeys((signal.SIGTERM, signal.SIGINT, signal.SIGHUP), _told)
    handlers[signal.SIGALRM] = _overdue
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
