"""How long a monitor goes on: so long in all, and so long without any event."""

from __future__ import annotations

import time


class MonitorTimeouts:
    """How long something goes on: so many seconds in all, and so many without anything; 0 is for ever."""

    __slots__ = ("_began", "_heard", "_idle", "_timeout")

    def __init__(self, timeout: float = 0.0, idle: float = 0.0) -> None:
        """Both are counted from now."""
        self._timeout = timeout
        self._idle = idle
        self._began = self._heard = time.monotonic()

    def happened(self) -> None:
        """Count the idle time anew."""
        self._heard = time.monotonic()

    def next_end(self) -> float:
        """Return when it is over if nothing happens, on the monotonic clock."""
        ends = [self._began + self._timeout] if self._timeout else []
        ends += [self._heard + self._idle] if self._idle else []
        return min(ends, default=float("inf"))

    def over(self) -> str:
        """Return why it is over, or nothing."""
        now = time.monotonic()
        if now < self.next_end():
            return ""
        return (
            "its time is over" if self._timeout and now >= self._began + self._timeout else "nothing happened"
        )
