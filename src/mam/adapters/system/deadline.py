"""The end of a wait that checks a condition again and again, with a pause between two checks."""

from __future__ import annotations

from time import sleep as _sleep

from mam.adapters.system import load_adjusted_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Deadline:
    """The end of a wait that checks a condition again and again.

    A wait for another process uses the load-adjusted clock, which is the default. A timeout that a user
    gave, or the timeout of a lock, uses `time.monotonic`.
    """

    __slots__ = ("_at", "_clock", "_sleep")

    def __init__(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], None] = _sleep,
    ) -> None:
        """Start counting the seconds now."""
        self._clock = clock or load_adjusted_clock.now
        self._sleep = sleep
        self._at = self._clock() + seconds

    def has_passed(self) -> bool:
        """Tell whether the time is over."""
        return self._clock() >= self._at

    def pause(self, seconds: float) -> bool:
        """Pause and return True; if the time is over, return False at once."""
        if self.has_passed():
            return False
        self._sleep(seconds)
        return True
