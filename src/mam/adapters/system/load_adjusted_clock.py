"""A clock that runs slower while more processes are runnable than the machine has cores.

A timeout for another process means seconds in which that process gets a core. With eight runnable processes
on two cores, a process gets a quarter of a core. This clock then runs at a quarter of the speed, so the
timeout lasts four times as long and allows the same work. On a quiet machine it runs like any other clock.
"""

from __future__ import annotations

import _thread
import os
from time import monotonic

# The clock never runs slower than this, so that a wait ends on every machine.
_SLOWEST = 0.05
_LEAST_STRETCHED = 0.25
_LOADAVG = "/proc/loadavg"


def share() -> float:
    """Return the share of a core that a runnable process gets now; 1.0 on a quiet machine."""
    runnable = _runnable()
    return min(1.0, max(_SLOWEST, (os.cpu_count() or 1) / runnable)) if runnable > 0 else 1.0


def _runnable() -> float:
    """Return how many processes and threads are runnable, this one included."""
    try:
        handle = os.open(_LOADAVG, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return _average()
    try:
        # 0.20 0.18 0.12 1/80 11206: the fourth field is runnable/all at this moment.
        return int(os.read(handle, 128).split()[3].partition(b"/")[0])
    except (IndexError, ValueError):
        return 1.0
    finally:
        os.close(handle)


def _average() -> float:
    """Return the load of the last minute, because macOS offers nothing newer."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return 1.0


class WorkClock:
    """The clock: each call of `now` adds the time since the last call, at the speed of that moment."""

    __slots__ = ("_at", "_guard", "_seconds")

    def __init__(self) -> None:
        self._guard = _thread.allocate_lock()
        self._at = monotonic()
        self._seconds = 0.0

    def now(self) -> float:
        """Return the seconds since the clock was made; only differences have a meaning."""
        speed = share()
        with self._guard:
            at = monotonic()
            self._seconds += (at - self._at) * speed
            self._at = at
            return self._seconds


now = WorkClock().now


def stretched(seconds: float) -> float:
    """Return how many real seconds a timeout of this clock takes, for a wait that measures the load once.

    One measurement may fall into a short burst, so the result is at most four times as long.
    """
    return seconds / max(share(), _LEAST_STRETCHED)
