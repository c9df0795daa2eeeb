"""Reports a change of an agent's activity to its job: a start, a permission, or the end of a turn."""

from __future__ import annotations

from mam.adapters.store.tables import jobs, messages
from mam.app.jobs import ledger_writer
from mam.app.jobs.find import open_job
from mam.core import job_event as events
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.errors import EventRefused
from mam.core.job_rules import JobStatus
from mam.core.message_rules import DELIVERED, MessageState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# Ages of activity are rounded to a tenth of a second.
_ROUNDED_SECONDS = 0.1
_SENT = (MessageState.TYPING, *DELIVERED, MessageState.UNCONFIRMED)


def prompted_at(transaction: Transaction, job: Job) -> float | None:
    """Return when the task that mam has given the agent was recorded; None if it is not given yet."""
    noted_at: float | None = job.data.get("prompted_at")
    if noted_at is not None or not job.data.get("message_id"):
        return noted_at
    message = messages.find(transaction, job.data["message_id"])
    return message.created_at if message is not None and message.state in _SENT else None


def has_unseen_turn(transaction: Transaction, job: Job, ended_at: float | None) -> bool:
    """Tell whether the agent's own record has a turn of this task that no look has seen.

    A turn may take less time than passes between two looks. If the task was held, mam does not know when it
    was given, and could take an earlier turn of the agent for a turn of this task.
    """
    task_given_at = prompted_at(transaction, job)
    if ended_at is None or task_given_at is None or job.data.get("worked_at") or job.data.get("was_held"):
        return False
    return ended_at > task_given_at + _ROUNDED_SECONDS


def report_activity(
    context: Context,
    transaction: Transaction,
    row: Row,
    state: str,
    waiting_for: str | None,
    *,
    at: float,
    ended_at: float | None = None,
    asks: str | None = None,
) -> str | None:
    """Report a change of an agent's activity to its job: a start, a permission, or the end of a turn.

    `ended_at` is the end of the agent's last turn, as the agent's own record has it. `asks` is what the
    agent asks a permission for, as its hook says; the screen does not say it.

    Returns the id of the job if something was reported. Activity from before the task was given belongs to
    other work and is ignored. A hook may arrive after a newer look at the screen. Then it does not change
    the current activity, and only counts as a proof of work.
    """
    if state not in (WORKING, WAITING, IDLE):
        return None
    job_and_token = open_job(context, transaction, row)
    if job_and_token is None or job_and_token[0].status == JobStatus.CHECKING:
        return None
    job, token = job_and_token
    task_given_at, is_newest = prompted_at(transaction, job), at >= (job.data.get("activity_at") or 0.0)
    is_same = (job.data.get("activity"), job.data.get("waiting_for")) == (state, waiting_for) and (
        asks in (None, job.data.get("asks"))
    )
    has_ended = state == IDLE and has_unseen_turn(transaction, job, ended_at)
    is_old = (is_newest and is_same and not has_ended) or (not is_newest and state != WORKING)
    if task_given_at is None or at < task_given_at or is_old:
        return None
    changes: dict[str, Any] = {}
    if is_newest:
        changes = {"activity": state, "activity_at": at, "waiting_for": waiting_for, "asks": asks}
    if state == WORKING:
        changes["worked_at"] = max(at, job.data.get("worked_at") or 0.0)
    elif has_ended:
        changes["worked_at"] = ended_at
    try:
        return (
            job.id
            if _report_change(transaction, jobs.update(transaction, job, data=changes), token, state)
            else None
        )
    except EventRefused:
        # The job has ended since it was read.
        return None


def _report_change(transaction: Transaction, job: Job, token: str, state: str) -> bool:
    seq_before, by = job.last_seq, {"by": "hook"}
    worked_at = job.data.get("worked_at") or 0.0
    if state in (WORKING, IDLE) and worked_at and job.status == JobStatus.PENDING:
        job = ledger_writer.report(transaction, job, events.STARTED, token, data=by)
    elif state == WAITING:
        detail = job.data.get("asks") or job.data["waiting_for"] or ""
        job = ledger_writer.report(transaction, job, events.PERMISSION, token, detail, data=by)
    if job.data.get("activity") == IDLE and worked_at > (job.data.get("turn_told") or 0.0):
        job = jobs.update(transaction, job, data={"turn_told": worked_at})
        ended = {**by, "turn_ended": True}
        job = ledger_writer.report(
            transaction, job, events.PROGRESS, token, "the agent ended its turn", data=ended
        )
    return job.last_seq > seq_before
