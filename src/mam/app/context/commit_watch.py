"""Waiting until another process has committed something to the root's database."""

from __future__ import annotations

import select
import time

from mam.adapters.system.file_watch import FileWatch
from mam.core.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

# Some systems do not report a write into an existing file: there the database is checked this often.
FALLBACK_SECONDS = 1.0
# After a report of the kernel: how long the checks are frequent, and the shortest and longest pause.
_ALERT, _FIRST_STEP, _LAST_STEP = 0.15, 0.0005, 0.01


class CommitWatch:
    """Waits until another process has committed something.

    The kernel reports a commit when SQLite writes it. The commit is readable only once it is flushed, some
    milliseconds later. So after each report of the kernel the database is checked often for a short time.
    """

    def __init__(self, context: Context) -> None:
        """Watch the folder of the database: every commit writes the log file in it."""
        self._registry = context.registry
        self._watch = FileWatch()
        self._watch.keep({context.paths.state: None})
        self._last_version = self._version()
        self._alert_until = 0.0

    def __enter__(self) -> CommitWatch:
        """Return this watch; the `with` statement closes it."""
        return self

    def __exit__(self, *error: object) -> None:
        """Stop watching the folder."""
        self._watch.close()

    def wait(self, end: float) -> bool:
        """Return True once there is a new commit, False at the monotonic time `end`."""
        step = _FIRST_STEP
        while (version := self._version()) == self._last_version:
            now = time.monotonic()
            if now >= end:
                return False
            seconds = min(end - now, step if now < self._alert_until else FALLBACK_SECONDS)
            if select.select([self._watch], [], [], seconds)[0]:
                self._watch.poll()
                self._alert_until, step = time.monotonic() + _ALERT, _FIRST_STEP
            else:
                step = min(step * 2, _LAST_STEP)
        self._last_version = version
        return True

    def _version(self) -> int | None:
        try:
            return self._registry.commit_number()
        except MamError:
            # The caller reads the database next, meets the same error there, and can report it.
            return None
