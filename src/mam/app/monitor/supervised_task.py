"""A resident task that may fail: it rests, longer after each failure, and the others go on."""

from __future__ import annotations

import time

from mam.app.context.setting_aside import reason_of
from mam.core.errors import MamError
from mam.core.growing_pause import pause_after

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Protocol

    class ResidentTask(Protocol):
        """A part of the resident. `tick()` runs after each pass, when it is due on the monotonic clock, and
        when one of its handles is readable.
        """

        def due(self) -> float: ...
        def handles(self) -> Iterable[int]: ...
        def is_needed(self) -> bool:
            """Tell whether the resident must keep running for this task although no session runs."""

        def tick(self) -> str:
            """Do what is due; return why the resident must end, or an empty string."""

    # Gets what failed, the error, how often it failed in a row, and the seconds until the next try.
    Failed = Callable[[str, Exception, int, float], None]

# Seconds after an error of mam that a task could not deal with itself.
_SOON = 1.0


class Supervision:
    """Counts the failures of one thing in a row, and says how long it rests."""

    def __init__(self, name: str, failed: Failed) -> None:
        self.name = name
        self.failures = 0
        self.reason: str | None = None
        self.rests_until = 0.0
        self._failed = failed

    def note_failure(self, error: Exception) -> None:
        """Count an unexpected error, and begin a pause."""
        self.failures += 1
        pause = pause_after(self.failures)
        self.rests_until = time.monotonic() + pause
        self.reason = reason_of(error)
        self._failed(self.name, error, self.failures, pause)

    def note_success(self) -> None:
        """Forget the failures."""
        self.failures, self.reason = 0, None

    def is_resting(self) -> bool:
        """Tell whether the pause after a failure lasts."""
        return time.monotonic() < self.rests_until


class SupervisedTask:
    """A resident task, and what to do when it fails."""

    def __init__(self, task: ResidentTask, failed: Failed) -> None:
        self.task = task
        self.state = Supervision(type(task).__name__, failed)
        # A tick that fell into a pause is made up for.
        self._is_owed = False

    def due(self) -> float:
        """Return when the next tick is due."""
        return self.state.rests_until if self._is_owed else max(self.state.rests_until, self.task.due())

    def handles(self) -> tuple[int, ...]:
        """Return the handles of the task; none in a pause, because nobody reads them then."""
        return () if self.state.is_resting() else tuple(self.task.handles())

    def is_needed(self) -> bool:
        """Tell whether the task needs the resident; a task that cannot say so does."""
        try:
            return self.task.is_needed()
        except Exception as error:
            if not self.state.is_resting():
                self.state.note_failure(error)
            return True

    def tick(self, *, must: bool) -> str:
        """Tick if it is due, or if it must; raise a MamError, and note any other one."""
        self._is_owed = self._is_owed or must
        if self.state.is_resting() or not (self._is_owed or time.monotonic() >= self.task.due()):
            return ""
        self._is_owed = False
        try:
            reason = self.task.tick()
        except MamError:
            if time.monotonic() >= self.task.due():
                # Due at once again, it would leave no time for anything else.
                self.state.rests_until = time.monotonic() + _SOON
            raise
        except Exception as error:
            self.state.note_failure(error)
            self._is_owed = True
            return ""
        self.state.note_success()
        return reason
