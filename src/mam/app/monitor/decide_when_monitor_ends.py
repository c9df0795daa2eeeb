"""Decides when a monitor ends: after a time in all, or after a time without any event."""

from __future__ import annotations

import time


class MonitorTimeouts:
    """Two timeouts in seconds: in all, and without any event. 0 means never."""

    __slots__ = ("_began", "_idle", "_last_event", "_timeout")

    def __init__(self, timeout: float = 0.0, idle: float = 0.0) -> None:
        """Count both from now."""
        self._timeout = timeout
        self._idle = idle
        self._began = self._last_event = time.monotonic()

    def note_event(self) -> None:
        """Restart the idle timeout."""
        self._last_event = time.monotonic()

    def next_end(self) -> float:
        """Return when the first timeout ends if nothing happens, on the monotonic clock."""
        ends = [self._began + self._timeout] if self._timeout else []
        ends += [self._last_event + self._idle] if self._idle else []
        return min(ends, default=float("inf"))

    def end_reason(self) -> str:
        """Return which timeout has ended, as a sentence, or an empty string."""
        now = time.monotonic()
        if now < self.next_end():
            return ""
        return (
            "the timeout was reached"
            if self._timeout and now >= self._began + self._timeout
            else "nothing happened within the idle timeout"
        )
