"""Ends a job on behalf of mam itself: exactly once, with a signed event and a reason."""

from __future__ import annotations

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs import ledger_writer
from mam.app.jobs.write_job_files import write_files
from mam.core import job_event as events
from mam.core.job_rules import OPEN, JobStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context


def finish(
    context: Context,
    job_id: str,
    name: str,
    detail: str,
    *,
    log: tuple[str, str] | None = None,
    decided_on: Job | None = None,
    also_parked: bool = False,
    **data: Any,
) -> bool:
    """End an open job with `completed` or `error`; return False if the job has ended already, or is parked.

    `log` is the name and detail of an entry that precedes the end in the log. `decided_on` is the state of
    the job on which the caller decided: if the agent has reported since then, or another attempt runs, the
    job is not ended. A job can be ended even if its token is lost. `also_parked` ends a parked job, too.
    """
    token = job_files.signing_token(context.paths.jobs, job_id)

    def work(transaction: Transaction) -> bool:
        job = jobs.find(transaction, job_id)
        if (
            job is None
            or not (job.status in OPEN or (also_parked and job.status == JobStatus.PARKED))
            or (decided_on is not None and _has_moved_on(job, decided_on))
        ):
            return False
        if log is not None:
            job = ledger_writer.enter(transaction, job, *log, **data)
        ledger_writer.emit(transaction, job, name, token, detail, data={"by": "mam", **data})
        return True

    has_ended = context.registry.note(work)
    if has_ended:
        write_files(context, job_id)
    return has_ended


def _has_moved_on(job: Job, decided_on: Job) -> bool:
    return job.attempt != decided_on.attempt or (
        job.status == JobStatus.CHECKING and decided_on.status != JobStatus.CHECKING
    )


def fail(context: Context, job_id: str, detail: str, reason: str, **data: Any) -> bool:
    """End an open job with an error."""
    return finish(context, job_id, events.ERROR, detail, reason=reason, **data)
