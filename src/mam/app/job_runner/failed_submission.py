"""The end of a submission that failed after its job was recorded: what it has left, its submitter is told."""

from __future__ import annotations

from mam.app.job_runner.finish import fail
from mam.app.jobs.find import running_session_of
from mam.core.errors import MamError, NotRecorded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.session_row import Row


def end_failed(context: Context, job_id: str, failure: tuple[str, str], *, is_new_session: bool) -> None:
    """End the job of a submission with an error; raise NotRecorded if that cannot be recorded.

    Then the job is still open, as on a full disk, and whoever repeats the command would have two. `failure`
    is the detail and the reason of the job's end. With `is_new_session` the session, if there is one, was
    started for this job.
    """
    try:
        fail(context, job_id, *failure)
    except MamError as error:
        row = running_session_of(context, job_id)
        raise _still_open(row, job_id, error, is_new_session=is_new_session) from error
    context.warn(f"job {job_id} has ended with an error: mam job logs {job_id}")
    row = running_session_of(context, job_id) if is_new_session else None
    if row is not None:
        context.warn(f"its session '{row['name']}' runs on: mam stop {row['name']}")


def _still_open(row: Row | None, job_id: str, error: MamError, *, is_new_session: bool) -> NotRecorded:
    if row is None:
        done, ends = "no agent runs for it", f"mam job cancel {job_id}"
    else:
        done = f"its agent '{row['name']}' runs"
        ends = f"mam job cancel {job_id}{' --stop' if is_new_session else ''}"
    return NotRecorded(
        f"job {job_id} is recorded, {done}, and mam could not go on: {error}",
        hint=f"do not repeat the command; make room, and end the job: {ends}",
        session=row,
    )
