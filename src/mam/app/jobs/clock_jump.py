"""A clock that is set while jobs are open: their times go along with it.

Times of jobs are kept as times of day, which survive a restart. A clock that is put forward would end every
job at once and have its agent's answer refused; one that is put back would make hooks look older than the
task.
"""

from __future__ import annotations

import time

from mam.adapters.store.tables import jobs
from mam.adapters.system import process
from mam.core.job import moved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context

_KEY = "jobs:clock"
_TIMES = ("prompted_at", "activity_at", "worked_at", "turn_told", "nudged_at")
# Seconds; what a clock is corrected by as a rule is less.
_JUMP = 30.0


def is_set(context: Context, draft: Transaction) -> bool:
    """Tell whether the clock was set since somebody looked in this boot, or nobody has yet."""
    return _jump(context, draft) is None or abs(_jump(context, draft) or 0.0) > _JUMP


def settle(context: Context, draft: Transaction) -> None:
    """Have the times of open jobs go along with a clock that was set."""
    if not is_set(context, draft):
        return
    jump = _jump(context, draft)
    if jump is not None:
        for job in jobs.listed(draft, only_open=True):
            _move(draft, job, jump, context.now())
    draft.set_meta(_KEY, {"boot": process.me().boot, "offset": context.now() - steady()})


def steady() -> float:
    """Return the seconds of a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _jump(context: Context, draft: Transaction) -> float | None:
    """Return by how much the clock was set; None if nobody knows how it stood in this boot."""
    known = draft.meta(_KEY)
    if known is None or known["boot"] != process.me().boot:
        return None
    return float(context.now() - steady() - known["offset"])


def _move(draft: Transaction, job: Job, jump: float, now: float) -> None:
    kept = {key: value for key in _TIMES if (value := job.data.get(key)) is not None}
    kept["began"] = job.data.get("began") or job.created_at
    data = {key: moved(value, jump, now) for key, value in kept.items()}
    jobs.update(draft, job, data=data, last_event_at=moved(job.last_event_at, jump, now))
