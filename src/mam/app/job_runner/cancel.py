"""Cancel a job: it ends at once. Its session goes on, unless it is to be stopped too."""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.app.job_runner.finish import finish
from mam.app.jobs.find import document, enrol, unknown
from mam.core import job_event as events
from mam.core.errors import NotAllowed
from mam.core.job import OPEN, JobStatus
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller

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
    """End an open job with `error`, reason cancelled; return it, and whether anything was done.

    A session cancels only what it submitted itself.
    """
    enrol(context, job_id, folder)
    job = context.registry.peek(lambda draft: jobs.find(draft, job_id), None)
    if job is None:
        raise unknown(context, job_id)
    me = caller.name
    if me not in ("user", job.data.get("created_by")):
        raise NotAllowed(
            f"job {job_id} was submitted by somebody else", hint="who submitted it may cancel it"
        )
    detail = reason or f"cancelled by {me}"
    changed = job.status in OPEN and finish(
        context,
        job_id,
        events.ERROR,
        detail,
        log=(events.CANCELLED, detail),
        reason=JobStatus.CANCELLED,
        cancelled_by=me,
    )
    if changed:
        from mam.app.job_runner.check import end_script

        end_script(job)
    if stop and changed and job.session_id:
        _stop(context, caller, job.session_id, detail)
    return document(context, job_id), changed


def _stop(context: Context, caller: Caller, session_id: str, reason: str) -> None:
    from mam.app.sessions.stop import stop

    row = context.registry.view().by_id(session_id)
    if row is not None and is_running(row):
        stop(context, caller, session_id, reason=reason)
