"""The end of a job by mam's own hand: once, signed, and with the reason."""

from __future__ import annotations

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs import ledger
from mam.app.jobs.write_files import show
from mam.core import job_event as events
from mam.core.job import OPEN, JobStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context


def finish(
    context: Context,
    job_id: str,
    name: str,
    detail: str,
    *,
    log: tuple[str, str] | None = None,
    seen: Job | None = None,
    **data: Any,
) -> bool:
    """End an open job with `completed` or `error`; False if somebody was faster.

    `log` is an entry, and its detail, that the log has before it. `seen` is the job by which it was decided:
    one that has reported since then, or goes on with another attempt, is left alone. Whatever became of
    its token: it must be possible to end it.
    """
    token = job_files.own_token(context.paths.jobs, job_id)

    def work(draft: Transaction) -> bool:
        job = jobs.find(draft, job_id)
        if job is None or job.status not in OPEN or (seen is not None and _has_gone_on(job, seen)):
            return False
        if log is not None:
            job = ledger.enter(draft, job, *log, **data)
        ledger.emit(draft, job, name, token, detail, data={"by": "mam", **data})
        return True

    done = context.registry.note(work)
    if done:
        show(context, job_id)
    return done


def _has_gone_on(job: Job, seen: Job) -> bool:
    return job.attempt != seen.attempt or (
        job.status == JobStatus.CHECKING and seen.status != JobStatus.CHECKING
    )


def fail(context: Context, job_id: str, detail: str, reason: str, **data: Any) -> bool:
    """End an open job with an error."""
    return finish(context, job_id, events.ERROR, detail, reason=reason, **data)
