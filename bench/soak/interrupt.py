"""An interrupt that is taken where the soak can end, and not in the middle of a fault or of its mending.

Raised wherever Python is, it may be lost: Python ignores an exception in a destructor or in a callback of a
weak reference. It may also come between two lines that belong together.
"""

from __future__ import annotations

import signal
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_STEP = 0.05


class Interrupt:
    """Whether SIGINT or SIGTERM has come; a second one ends the process at once."""

    def __init__(self) -> None:
        self._has_come = False

    def watch(self) -> None:
        """Take the signals from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._take)

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        if self._has_come:
            raise KeyboardInterrupt
        self._has_come = True

    def sleep_until(self, moment: float) -> None:
        """Sleep until that moment of `time.monotonic`; raise KeyboardInterrupt as soon as one has come."""
        self.heed()
        while (left := moment - time.monotonic()) > 0:
            time.sleep(min(left, _STEP))
            self.heed()

    def heed(self) -> None:
        """Raise KeyboardInterrupt if one has come."""
        if self._has_come:
            raise KeyboardInterrupt
