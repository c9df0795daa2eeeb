"""Watching a root, or going along with who does: when that one has ended, this process takes its place."""

from __future__ import annotations

import time

from mam.app.context.start_resident import lock
from mam.core.errors import ResidentRuns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.app.context.context import World

# Seconds between looks whether the resident is still there.
NET = 1.0


class Limits:
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


def in_turn(watch: Callable[[], str], go_along: Callable[[], str]) -> str:
    """Watch, or go along until the resident has ended and then watch; return why it ended.

    `go_along` returns nothing once nobody watches any more.
    """
    while True:
        try:
            return watch()
        except ResidentRuns:
            if why := go_along():
                return why


def is_watched(world: World) -> bool:
    """Tell whether a resident is awake."""
    return lock(world).holder() is not None
