"""Adjusts the times of open jobs when somebody sets the clock of the machine.

The database keeps wall clock times, because they survive a restart. Without the adjustment, a clock that is
set forward would time out every job at once, and a clock that is set back would make hooks look older than
the task that they report on.
"""

from __future__ import annotations

import time

from mam.adapters.store.tables import jobs
from mam.adapters.system import process
from mam.app.context import setting_aside
from mam.core.job_rules import after_clock_jump

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context

_KEY = "jobs:clock"
_TIMES = ("prompted_at", "activity_at", "worked_at", "turn_told", "nudged_at")
# Seconds. Time synchronisation usually corrects the clock by less; only larger steps count as a jump.
_JUMP = 30.0


def needs_adjusting(context: Context, transaction: Transaction) -> bool:
    """Tell whether the clock was set since the last check, or this boot had no check yet."""
    return _jump(context, transaction) is None or abs(_jump(context, transaction) or 0.0) > _JUMP


def adjust_times(context: Context, transaction: Transaction) -> None:
    """Move the times of open jobs by the same amount as the clock, and remember the clock's offset."""
    if not needs_adjusting(context, transaction):
        return
    jump = _jump(context, transaction)
    if jump is not None:
        for job in jobs.listed(transaction, only_open=True):
            with setting_aside.isolated(transaction, setting_aside.JOB, job.id, stamp=job.stamp):
                _adjust_job(transaction, job, jump, context.now())
    transaction.set_meta(_KEY, {"boot": process.me().boot, "offset": context.now() - boot_seconds()})


def boot_seconds() -> float:
    """Return the seconds since boot: nobody can set this clock, and it runs while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _jump(context: Context, transaction: Transaction) -> float | None:
    """Return by how many seconds the clock was set; None if this boot has no earlier offset."""
    record = transaction.meta(_KEY)
    if record is None or record["boot"] != process.me().boot:
        return None
    return float(context.now() - boot_seconds() - record["offset"])


def _adjust_job(transaction: Transaction, job: Job, jump: float, now: float) -> None:
    times = {key: value for key in _TIMES if (value := job.data.get(key)) is not None}
    times["began"] = job.data.get("began") or job.created_at
    data = {key: after_clock_jump(value, jump, now) for key, value in times.items()}
    jobs.update(transaction, job, data=data, last_event_at=after_clock_jump(job.last_event_at, jump, now))
