"""Does the resident's work for jobs in a process that waits for a job, while no resident runs.

It types held messages, makes a pass and advances every open job. Otherwise the awaited job might never end.
"""

from __future__ import annotations

import time

from mam.app.context import resident_start_and_lock
from mam.app.job_runner.resident_task import JobTask
from mam.app.messages.delivery import deliver_all
from mam.app.sessions.reconcile import reconcile
from mam.core.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.caller import Caller

_TICK_SECONDS = 1.0


class WaiterTask:
    """Does the resident's work for jobs in a process that waits for one, while no resident runs."""

    def __init__(self, context: Context, caller: Caller) -> None:
        """`context` is the one of the waiting process."""
        self.caller = caller
        self._job_task = JobTask(context, caller)
        self._due = 0.0
        self._last_warning = ""

    def due(self) -> float:
        """Return when the next tick is due, on the monotonic clock."""
        return self._due

    def _warn_once(self, error: MamError) -> None:
        if error.message != self._last_warning:
            self._last_warning = error.message
            self._job_task.context.warn(error.message)

    def tick(self) -> str:
        """Do what the resident would do, unless one runs and works."""
        if resident_start_and_lock.working_holder(self._job_task.context) is None:
            try:
                deliver_all(self._job_task.context)
                reconcile(self._job_task.context, self.caller)
                self._job_task.tick()
                # Whoever waits may leave as soon as the job has ended, and this process with them.
                self._job_task.join()
            except MamError as error:
                # The process keeps waiting: the end of a job may be reported in spite of this error.
                self._warn_once(error)
        self._due = time.monotonic() + _TICK_SECONDS
        return ""
