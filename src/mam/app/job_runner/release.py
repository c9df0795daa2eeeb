"""Releases parked jobs: each is open again, and follows the ordinary rules from then on.

A job whose session has ended would end with an error at once. Such a job stays parked, and the answer says
what a person can do first.
"""

from __future__ import annotations

from mam.adapters.store.tables import jobs, messages
from mam.app.context import resident_start_and_lock
from mam.app.context.authority import require_person
from mam.app.context.liveness import check_liveness
from mam.app.jobs import ledger_writer
from mam.app.jobs.command_end import recorded_end
from mam.app.jobs.write_job_files import write_files
from mam.app.messages.parking import release_in
from mam.core.job_rules import HUMAN, JobStatus, runs_command
from mam.core.liveness_values import Liveness
from mam.core.message_rules import MessageState
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]


def release(context: Context, caller: Caller, job_ids: Sequence[str] | None = None) -> list[Document]:
    """Release parked jobs, or all; return `{job_id, status, released, reason, hint}` of each.

    The task of a released job that its agent did not get yet is released, too.
    """
    require_person(caller, "mam job release")
    none: list[Job] = []
    if job_ids is None:
        job_ids = [job.id for job in context.registry.peek(jobs.parked, none)]
    outcomes = [_release(context, caller, job_id) for job_id in dict.fromkeys(job_ids)]
    if any(outcome["released"] for outcome in outcomes):
        resident_start_and_lock.ensure(context)
    return outcomes


def _release(context: Context, caller: Caller, job_id: str) -> Document:
    job = _find(context, job_id)
    refusal = ("there is no such job", "mam job list shows all jobs") if job is None else None
    if job is not None:
        refusal = _refusal(context, job) or context.registry.note(
            lambda transaction: _release_in(transaction, job_id, caller.name)
        )
    if refusal is None:
        write_files(context, job_id)
    current = _find(context, job_id)
    return {
        "job_id": job_id,
        "status": current.status if current is not None else None,
        "released": refusal is None,
        "reason": refusal[0] if refusal else None,
        "hint": refusal[1] if refusal else None,
    }


def _release_in(transaction: Transaction, job_id: str, by: str) -> tuple[str, str] | None:
    job = jobs.find(transaction, job_id)
    if job is None or job.status != JobStatus.PARKED:
        return _not_parked(job_id, job)
    ledger_writer.release(transaction, job, by)
    transaction.log(by, "job release", None, None, job=job_id)
    task = messages.find(transaction, job.data.get("message_id") or "")
    if task is not None and task.state == MessageState.PARKED:
        release_in(transaction, task, by)
    return None


def _not_parked(job_id: str, job: Job | None) -> tuple[str, str]:
    status = job.status if job is not None else "gone"
    return f"it is {status}, and not parked", f"mam job status {job_id} shows it"


def _refusal(context: Context, job: Job) -> tuple[str, str] | None:
    """Return why a job is not released, and what helps; None if somebody can carry it on."""
    if job.status != JobStatus.PARKED:
        return _not_parked(job.id, job)
    cancel = f"mam job cancel {job.id} ends it"
    if job.data.get("parked_from") == JobStatus.CHECKING:
        return None
    if job.session_id is None:
        return None if job.data.get("type") == HUMAN else ("no agent has begun it", cancel)
    if runs_command(job.data) and recorded_end(context, job) is not None:
        return None
    row = context.registry.view().by_id(job.session_id)
    if row is None:
        return "its session is not registered here, so it would end with an error at once", cancel
    name, other = row["name"], row.get("delegate_job_id")
    if other not in (None, job.id):
        return f"its session '{name}' was given job {other} since", cancel
    if is_running(row) and check_liveness(context, row).state not in (Liveness.DEAD, Liveness.GONE):
        return None
    way = cancel if runs_command(job.data) else f"mam resume {name} first; {cancel}"
    return f"its session '{name}' does not run, so it would end with an error at once", way


def _find(context: Context, job_id: str) -> Job | None:
    return context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
