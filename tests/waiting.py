"""Waiting for a condition on a machine of any speed: by `adapters.system.load_adjusted_clock`."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from mam.adapters.store.tables.messages import new_id
from mam.adapters.system import load_adjusted_clock
from mam.core.errors import TimedOut

if TYPE_CHECKING:
    import mam
    from mam.app.api.sessions import Session

    Document = dict[str, Any]

T = TypeVar("T")

SECONDS = 15.0
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.005, 0.1
_LOOK = 1.0
_JOB_SECONDS = 60.0


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


def wait_for_jobs(fleet: mam.Fleet, *jobs: str) -> list[Document]:
    """Wait for the end of these jobs, or of all open ones, as `jobs.wait` does with its own timeout."""

    def look() -> tuple[list[Document]] | None:
        with suppress(TimedOut):
            return (fleet.jobs.wait(jobs, timeout=_LOOK),)
        return None

    return wait_until(look, f"the end of {jobs or 'all jobs'}", _JOB_SECONDS)[0]


def send_and_wait(fleet: mam.Fleet, target: str, text: str, **options: Any) -> Document:
    """Send a message and wait until it is submitted, as `send` does with its own timeout; return the receipt.

    A message that is sent again by its id is not typed again: `send` says what has become of it.
    """
    message, states = new_id(), []

    def look() -> Document | None:
        receipt = fleet.messages.send(target, text, message_id=message, **options)
        states.append(receipt["state"])
        return receipt if receipt["state"] == "submitted" else None

    return wait_until(look, lambda: f"{text!r} to be submitted: it is {states[-1]}")
