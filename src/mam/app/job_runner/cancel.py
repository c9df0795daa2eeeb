"""Cancels a job. The job ends at once; its session keeps running unless the caller asks to stop it too."""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.app.job_runner.finish import finish
from mam.app.jobs.find import document, not_found, running_session_of
from mam.app.jobs.import_record import ensure_in_ledger
from mam.core import job_event as events
from mam.core.errors import NotAllowed
from mam.core.job_rules import ENDED, JobStatus, runs_command
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    Document = dict[str, Any]


def cancel(
    context: Context,
    caller: Caller,
    job_id: str,
    *,
    reason: str | None = None,
    stop: bool = False,
    folder: str | None = None,
) -> tuple[Document, bool]:
    """End an open or parked job with `error`, reason cancelled; return it, and whether this call ended it.

    A session may cancel only the jobs that it submitted. The session of a command ends with its job.
    """
    ensure_in_ledger(context, job_id, folder)
    job = context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
    if job is None:
        raise not_found(context, job_id)
    me = caller.name
    if me not in ("user", job.data.get("created_by")):
        raise NotAllowed(
            f"job {job_id} was submitted by somebody else", hint="whoever submitted a job may cancel it"
        )
    detail = reason or f"cancelled by {me}"
    changed = job.status not in ENDED and finish(
        context,
        job_id,
        events.ERROR,
        detail,
        log=(events.CANCELLED, detail),
        also_parked=True,
        reason=JobStatus.CANCELLED,
        cancelled_by=me,
    )
    if changed:
        from mam.app.job_runner.check import end_script

        end_script(job)
    if (stop or runs_command(job.data)) and changed:
        row = _session_of(context, job)
        if row is not None and is_running(row):
            _stop(context, caller, row, detail)
    return document(context, job_id), changed


def _session_of(context: Context, job: Job) -> Row | None:
    """Return the session of a job; of a submission that failed, the one that it has started."""
    if job.session_id:
        return context.registry.view().by_id(job.session_id)
    return running_session_of(context, job.id)


def _stop(context: Context, caller: Caller, row: Row, reason: str) -> None:
    from mam.app.sessions.stop import stop

    stop(context, caller, row["id"], reason=reason)
