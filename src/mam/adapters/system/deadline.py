"""A time until which somebody looks for something, with a pause between two looks."""

from __future__ import annotations

from time import sleep as _sleep

from mam.adapters.system import load_adjusted_clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Deadline:
    """The end of a wait that looks again and again.

    It goes by the load-adjusted clock, for a wait for another process. A time that a caller gave, or that
    a lock has, goes by `time.monotonic`.
    """

    __slots__ = ("_at", "_clock", "_sleep")

    def __init__(
        self,
        seconds: float,
        *,
        clock: Callable[[], float] | None = None,
        sleep: Callable[[float], None] = _sleep,
    ) -> None:
        """Count the seconds from now on."""
        self._clock = clock or load_adjusted_clock.now
        self._sleep = sleep
        self._at = self._clock() + seconds

    def has_passed(self) -> bool:
        """Tell whether the time is over."""
        return self._clock() >= self._at

    def pause(self, seconds: float) -> bool:
        """Pause and return True: look again. Return False at once where the time is over."""
        if self.has_passed():
            return False
        self._sleep(seconds)
        return True
