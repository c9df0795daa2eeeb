"""Waiting until another process has committed something to the root's database."""

from __future__ import annotations

import select
import time

from mam.adapters.system.file_watch import FileWatch
from mam.core.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

# Where writing in place is not told, the database is looked at this often.
NET = 1.0
# Seconds of frequent looks after the kernel's word, and how far apart they are.
_ALERT, _FIRST_LOOK, _LAST_LOOK = 0.15, 0.0005, 0.01


class Commits:
    """Waits until somebody has committed something.

    The kernel tells of a commit when it is written, and it can be read when it is flushed, some milliseconds
    later: after each word of the kernel there is a time of frequent looks.
    """

    def __init__(self, context: Context) -> None:
        """Watch the folder of the database, whose log file every commit writes."""
        self._registry = context.registry
        self._watch = FileWatch()
        self._watch.keep({context.paths.state: None})
        self._seen = self._number()
        self._alert_until = 0.0

    def __enter__(self) -> Commits:
        """Use as a context, to let go of the folder."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let go."""
        self._watch.close()

    def wait(self, end: float) -> bool:
        """Return True when there is a commit that was not there before, False at a monotonic time."""
        step = _FIRST_LOOK
        while (seen := self._number()) == self._seen:
            now = time.monotonic()
            if now >= end:
                return False
            seconds = min(end - now, step if now < self._alert_until else NET)
            if select.select([self._watch], [], [], seconds)[0]:
                self._watch.poll()
                self._alert_until, step = time.monotonic() + _ALERT, _FIRST_LOOK
            else:
                step = min(step * 2, _LAST_LOOK)
        self._seen = seen
        return True

    def _number(self) -> int | None:
        try:
            return self._registry.others()
        except MamError:
            # Whoever waits here reads next, and meets the same error where it can be told.
            return None
