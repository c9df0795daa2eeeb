"""A clock that goes as fast as the machine works: slower while more processes want a core than there are.

Whoever waits for another process gives it so many seconds, and means seconds in which it gets a core. On a
machine with eight runnable processes for two cores it gets a quarter of one: there this clock goes at a
quarter of the speed, and a deadline by it gives the process the same work in four times the time. On a quiet
machine it goes like any other.
"""

from __future__ import annotations

import _thread
import os
from time import monotonic

# It never goes slower than this: a wait ends on every machine.
_SLOWEST = 0.05
_LEAST_STRETCHED = 0.25
_LOADAVG = "/proc/loadavg"


def share() -> float:
    """Return the part of a core that a process which wants one gets now; 1.0 on a quiet machine."""
    wanted = _runnable()
    return min(1.0, max(_SLOWEST, (os.cpu_count() or 1) / wanted)) if wanted > 0 else 1.0


def _runnable() -> float:
    """Return how many processes and threads run or would like to, this one included."""
    try:
        handle = os.open(_LOADAVG, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return _average()
    try:
        # 0.20 0.18 0.12 1/80 11206: the fourth is runnable/all, of this very moment.
        return int(os.read(handle, 128).split()[3].partition(b"/")[0])
    except (IndexError, ValueError):
        return 1.0
    finally:
        os.close(handle)


def _average() -> float:
    """Return the load of the last minute: all that macOS tells."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return 1.0


class WorkClock:
    """Adds up the time since it was last asked, each time at the speed of that moment."""

    __slots__ = ("_at", "_guard", "_seconds")

    def __init__(self) -> None:
        self._guard = _thread.allocate_lock()
        self._at = monotonic()
        self._seconds = 0.0

    def now(self) -> float:
        """Return seconds since this process began to count; only a difference says anything."""
        speed = share()
        with self._guard:
            at = monotonic()
            self._seconds += (at - self._at) * speed
            self._at = at
            return self._seconds


now = WorkClock().now


def stretched(seconds: float) -> float:
    """Return how long so many seconds of this clock take by a wall clock, for a wait that cannot ask again.

    One look at the machine may fall into a short burst, so it makes a wait four times as long at most.
    """
    return seconds / max(share(), _LEAST_STRETCHED)
