"""What happens to a session happens to its job.

Everything here works on the draft of the verb's own change, so that row and job are one commit. A session
without a job costs one look at the row.
"""

from __future__ import annotations

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs, messages
from mam.app.jobs import ledger
from mam.app.jobs.write_files import show
from mam.core import job_event as events
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.errors import EventRefused
from mam.core.job import OPEN, JobStatus
from mam.core.message import DELIVERED, MessageState
from mam.core.session_event import Died, Renamed, Resumed, Stopped, Stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.session_event import SessionEvent
    from mam.core.session_row import Row

TERMINATING = "terminating"
BOOTSTRAP, EXITED = "bootstrap", "agent exited"
# Ages of activity are rounded to a tenth of a second.
_ROUNDED_SECONDS = 0.1
_SENT = (MessageState.TYPING, *DELIVERED, MessageState.UNCONFIRMED)


def open_job(context: Context, draft: Transaction, row: Row) -> tuple[Job, str] | None:
    """Return the open job that a session works on now, and its token."""
    job_id = row.get("delegate_job_id")
    job = jobs.find(draft, job_id) if job_id else None
    if job is None or job.status not in OPEN or job.session_id != row["id"]:
        return None
    return job, job_files.own_token(context.paths.jobs, job.id)


def on_session_event(context: Context, draft: Transaction, event: SessionEvent) -> None:
    """Bring the session's job in line, and its files after the commit."""
    row = event.row
    if isinstance(event, Resumed):
        return
    if isinstance(event, Renamed):
        changed = _rename(draft, row, event.before)
    elif job_id := row.get("delegate_job_id"):
        changed = [job_id]
        if found := open_job(context, draft, row):
            _advance(draft, *found, event)
    else:
        return

    def show_jobs() -> None:
        for job_id in changed:
            show(context, job_id)

    draft.after_commit(show_jobs)


def _advance(draft: Transaction, job: Job, token: str, event: SessionEvent) -> None:
    if isinstance(event, Stopping):
        ledger.emit(draft, job, events.PROGRESS, token, TERMINATING, data={"by": "mam"})
    elif isinstance(event, Stopped):
        # It is cancelled, whatever its last event is called.
        data = {"by": "mam", "stopped": True, "reason": "stopped"}
        ledger.emit(draft, job, events.COMPLETED, token, event.reason or "", data=data)
    elif isinstance(event, Died):
        _die(draft, job, token, event.exit_status)


def _die(draft: Transaction, job: Job, token: str, status: int | None) -> None:
    """End the job of a session whose agent is gone; one that has reported is only checked any more."""
    if job.status == JobStatus.CHECKING:
        return
    code = "unknown" if status is None else status
    if prompted_at(draft, job) is None:
        detail, reason = f"agent bootstrap failed (exit {code})", BOOTSTRAP
    else:
        detail, reason = f"the agent ended without a report (exit {code})", EXITED
    data = {"by": "mam", "reason": reason, "exit_status": status}
    ledger.emit(draft, job, events.ERROR, token, detail, data=data)


def _rename(draft: Transaction, row: Row, before: str) -> list[str]:
    """Have the jobs of a session name it as it is called now; return their ids."""
    found = [*jobs.listed(draft, only_open=True), *jobs.listed(draft, session_id=row["id"])]
    changed = {
        job.id: job
        for job in found
        if row["id"] in (job.session_id, job.data.get("worker_session_id"))
        and job.data.get("agent_session") == f"tmux:{before}"
    }
    for job in changed.values():
        jobs.update(draft, job, data={"agent_session": f"tmux:{row['name']}"})
    return list(changed)


def is_open(context: Context, job_id: str | None) -> bool:
    """Tell whether a job is still worked on."""
    return bool(job_id) and job_id in open_of(context)


def open_of(context: Context) -> set[str]:
    """Return the ids of the jobs that are open."""
    none: set[str] = set()
    return context.registry.peek(jobs.open_ids, none)


def prompted_at(draft: Transaction, job: Job) -> float | None:
    """Return when the agent was given its task in this attempt; None if it was not yet."""
    known: float | None = job.data.get("prompted_at")
    if known is not None or not job.data.get("message_id"):
        return known
    message = messages.find(draft, job.data["message_id"])
    return message.created_at if message is not None and message.state in _SENT else None


def has_unseen_turn(draft: Transaction, job: Job, ended_at: float | None) -> bool:
    """Tell whether the agent's own record has a turn of this task that nobody saw it work on.

    A turn may take less time than lies between two looks. Of a task that was held nobody knows when it was
    given, so an earlier turn of the agent could be taken for its own.
    """
    given = prompted_at(draft, job)
    if ended_at is None or given is None or job.data.get("worked_at") or job.data.get("was_held"):
        return False
    return ended_at > given + _ROUNDED_SECONDS


def hear(
    context: Context,
    draft: Transaction,
    row: Row,
    state: str,
    waiting_for: str | None,
    *,
    at: float,
    ended_at: float | None = None,
) -> str | None:
    """Report what an agent was seen to do, once per change: start, permission waits, the end of a turn.

    `ended_at` is when the agent's own record says that its last turn ended.

    Returns the id of the job if something was reported. What happened before the task was given speaks of
    something else. A hook may be heard after a look that is younger than it: then it is history, and counts
    as such.
    """
    if state not in (WORKING, WAITING, IDLE):
        return None
    found = open_job(context, draft, row)
    if found is None or found[0].status == JobStatus.CHECKING:
        return None
    job, token = found
    given, is_newest = prompted_at(draft, job), at >= (job.data.get("activity_at") or 0.0)
    is_same = (job.data.get("activity"), job.data.get("waiting_for")) == (state, waiting_for)
    has_ended = state == IDLE and has_unseen_turn(draft, job, ended_at)
    is_old = (is_newest and is_same and not has_ended) or (not is_newest and state != WORKING)
    if given is None or at < given or is_old:
        return None
    changes: dict[str, Any] = {}
    if is_newest:
        changes = {"activity": state, "activity_at": at, "waiting_for": waiting_for}
    if state == WORKING:
        changes["worked_at"] = max(at, job.data.get("worked_at") or 0.0)
    elif has_ended:
        changes["worked_at"] = ended_at
    try:
        return job.id if _say(draft, jobs.update(draft, job, data=changes), token, state) else None
    except EventRefused:
        # It ended in this very moment.
        return None


def _say(draft: Transaction, job: Job, token: str, state: str) -> bool:
    said, by = job.last_seq, {"by": "hook"}
    worked = job.data.get("worked_at") or 0.0
    if state in (WORKING, IDLE) and worked and job.status == JobStatus.PENDING:
        job = ledger.report(draft, job, events.STARTED, token, data=by)
    elif state == WAITING:
        job = ledger.report(draft, job, events.PERMISSION, token, job.data["waiting_for"] or "", data=by)
    if job.data.get("activity") == IDLE and worked > (job.data.get("turn_told") or 0.0):
        job = jobs.update(draft, job, data={"turn_told": worked})
        ended = {**by, "turn_ended": True}
        job = ledger.report(draft, job, events.PROGRESS, token, "the agent ended its turn", data=ended)
    return job.last_seq > said
