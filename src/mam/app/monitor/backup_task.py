"""The resident task that copies the state of a root after changes.

A thread makes the copies, because a large database takes some seconds. Readers of a write-ahead log hold up
no writers, so the copy is one step.
"""

from __future__ import annotations

import os
import threading
import time

from mam.adapters.store import database
from mam.app.context.setting_aside import reason_of
from mam.app.monitor import backup
from mam.app.monitor.backup_removal import remove_from_copies
from mam.core.backup_rotation import CHANGE
from mam.core.errors import MamError, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

# Seconds from a change to its copy: changes come in bursts, and a copy is made within a minute.
_DELAY = 30.0
# Copies take at most one part in so many of the time.
_SHARE = 100.0
# Seconds between looks at a copy that is being made.
_LOOK = 1.0
# Seconds after a failure.
_AGAIN = 600.0
# How many bytes are surely copied in a second. A resident that starts does not know how long its predecessor
# took.
_BYTES_A_SECOND = 100e6
# When the resident ends, it copies the last changes of a database of at most so many bytes, and waits so many
# seconds for a copy that was begun.
_SMALL, _GOODBYE_SECONDS = 8 << 20, 0.5
_NEVER = float("inf")


class BackupTask:
    """A resident task: a change is copied within a minute, unless the database is large."""

    def __init__(self, context: Context) -> None:
        # A connection of its own notices the commits of the resident, too. Only one thread uses it at a time.
        self.context = context.for_thread()
        self._copied: int | None = None
        self._due = _NEVER
        self._not_before: float | None = None
        self._thread: _CopyThread | None = None
        self._problem = ""
        self._is_at_work = False

    def due(self) -> float:
        """Return the time of the next copy, or of a look at the one that is made, on the monotonic clock."""
        return self._due

    def handles(self) -> tuple[int, ...]:
        """Return no handles: a change wakes the resident anyway."""
        return ()

    def is_needed(self) -> bool:
        """Return False: the last changes are copied when the resident ends."""
        return False

    def tick(self) -> str:
        """Begin a copy if one is due; raise the error of the last one, once."""
        self._is_at_work = True
        if self._thread is not None:
            self._due = time.monotonic() + _LOOK
            if self._thread.is_alive():
                return ""
            self._due = _NEVER
            self._finish(self._thread)
        if self._is_changed() and self._due == _NEVER:
            self._due = max(time.monotonic() + _DELAY, self._earliest())
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + _LOOK
            self._copied = self.context.registry.commit_number()
            self._thread = _CopyThread(self.context)
            self._thread.start()
        return ""

    def _finish(self, thread: _CopyThread) -> None:
        self._thread = None
        self._not_before = time.monotonic() + _SHARE * thread.seconds
        if not thread.is_done:
            self._copied = None
            self._not_before = max(self._not_before, time.monotonic() + _AGAIN)
        error = thread.error
        if error is None:
            self._problem = ""
        elif not isinstance(error, MamError):
            raise error
        elif error.message != self._problem:
            self._problem = error.message
            raise error

    def _is_changed(self) -> bool:
        number = self.context.registry.commit_number()
        return number is not None and number != self._copied

    def _earliest(self) -> float:
        """Return the time before which another copy would take too much of the time."""
        if self._not_before is None:
            newest = next(iter(backup.listed(self.context)), None)
            took = newest.size / _BYTES_A_SECOND if newest else 0.0
            age = max(0.0, self.context.now() - newest.made_at) if newest else 0.0
            self._not_before = time.monotonic() + max(0.0, _SHARE * took - age)
        return self._not_before

    def leave_last(self) -> None:
        """Copy nothing more when this task is closed."""
        self._is_at_work = False

    def close(self) -> MamError | None:
        """Copy the last changes if that is quick; return the error of that copy, or of the one before.

        A copy that was begun and failed is made again here; nobody has heard of its error yet.
        """
        untold: Exception | None = None
        if self._thread is not None:
            self._thread.join(_GOODBYE_SECONDS)
            if self._thread.is_alive():
                # It is a daemon, and its connection ends with the process.
                return None
            untold = self._thread.error
            if not self._thread.is_done:
                self._copied = None
            self._thread = None
        try:
            if self._is_at_work and self._is_changed():
                with database.errors(self.context.paths.db):
                    is_small = os.stat(self.context.paths.db).st_size <= _SMALL
                if is_small:
                    backup.make_copy(self.context, CHANGE)
                    remove_from_copies(self.context)
                    untold = None
        except Exception as error:
            untold = error
        finally:
            self.context.close()
        if untold is None or isinstance(untold, MamError):
            return untold
        return Unavailable(f"the last changes were not copied: {reason_of(untold)}")


class _CopyThread(threading.Thread):
    """Makes one copy, removes from the others what was forgotten, and measures how long that takes."""

    def __init__(self, context: Context) -> None:
        super().__init__(daemon=True)
        self.context = context
        self.error: Exception | None = None
        # Whether the copy was made; `error` may then say that an older one cannot be changed.
        self.is_done = False
        self.seconds = 0.0

    def run(self) -> None:
        """Make the copy. What was forgotten leaves the others also where there is no room for another."""
        begun = time.monotonic()
        # The resident raises an error: nobody sees what a thread raises.
        try:
            backup.make_copy(self.context, CHANGE)
            self.is_done = True
        except Exception as error:
            self.error = error
        try:
            remove_from_copies(self.context)
        except Exception as error:
            if self.error is None:
                self.error = error
            else:
                self.context.warn(f"what was removed is still in a copy of the state: {reason_of(error)}")
        finally:
            self.seconds = time.monotonic() - begun
