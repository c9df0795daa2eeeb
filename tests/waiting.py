"""Waiting for a condition on a machine of any speed: by `adapters.system.load_adjusted_clock`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from mam.adapters.system import load_adjusted_clock
from mam.core.errors import TimedOut

if TYPE_CHECKING:
    from mam.app.api.sessions import Session

    Document = dict[str, Any]

T = TypeVar("T")

SECONDS = 15.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
_LOOK = 1.0


def wait_until(
    condition: Callable[[], T], what: str | Callable[[], str] = "the condition", seconds: float = SECONDS
) -> T:
    """Return the first true value of a condition; fail, showing `what`, when the time is over.

    The pause is twice as long as the look took: who waits leaves the machine to who works.
    """
    deadline = load_adjusted_clock.now() + seconds
    while True:
        began = time.monotonic()
        if value := condition():
            return value
        assert load_adjusted_clock.now() < deadline, (
            f"waited in vain for {what() if callable(what) else what}"
        )
        time.sleep(min(max(2 * (time.monotonic() - began), _SHORTEST_PAUSE), _LONGEST_PAUSE))


def wait_for(session: Session, condition: str) -> Document:
    """Wait for a session as its own `wait` does, whose timeout would be in seconds of a quiet machine."""

    def look() -> Document | None:
        with suppress(TimedOut):
            return session.wait(condition, timeout=_LOOK)
        return None

    return wait_until(look, f"{session.name}: {condition}")
