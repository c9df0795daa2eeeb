"""Updates the job of a session when something happens to the session.

Each function works on the transaction that changes the session, so that row and job are one commit. For a
session without a job it only reads the row.
"""

from __future__ import annotations

from mam.adapters.store.tables import jobs
from mam.app.context import setting_aside
from mam.app.jobs import ledger_writer
from mam.app.jobs.find import open_job
from mam.app.jobs.report_activity import prompted_at
from mam.app.jobs.write_job_files import write_files
from mam.core import job_event as events
from mam.core.job_rules import JobStatus, runs_command
from mam.core.session_event import Died, Renamed, Resumed, Stopped, Stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.session_event import SessionEvent
    from mam.core.session_row import Row

TERMINATING = "terminating"
BOOTSTRAP, EXITED = "bootstrap", "agent exited"


def on_session_event(context: Context, transaction: Transaction, event: SessionEvent) -> None:
    """Update the session's job in this transaction, and the job's files after the commit."""
    row = event.row
    if isinstance(event, Resumed):
        return
    if isinstance(event, Renamed):
        changed = _rename_in_jobs(transaction, row, event.before)
    elif job_id := row.get("delegate_job_id"):
        changed = [job_id]
        if job_and_token := open_job(context, transaction, row):
            job, token = job_and_token
            # A session can be stopped whatever its job is like.
            with setting_aside.isolated(transaction, setting_aside.JOB, job.id, stamp=job.stamp):
                _advance(context, transaction, job, token, event)
    else:
        return

    def show_jobs() -> None:
        for job_id in changed:
            write_files(context, job_id)

    transaction.after_commit(show_jobs)


def _advance(context: Context, transaction: Transaction, job: Job, token: str, event: SessionEvent) -> None:
    if runs_command(job.data):
        from mam.app.jobs.command_end import end_if_recorded, end_of_dead_session

        # A command that has ended before the stop began ended by itself, whoever removes its pane.
        if isinstance(event, Stopping) and end_if_recorded(context, transaction, job):
            return
        if isinstance(event, Died):
            end_of_dead_session(context, transaction, job, event.row)
            return
    if isinstance(event, Stopping):
        ledger_writer.emit(transaction, job, events.PROGRESS, token, TERMINATING, data={"by": "mam"})
    elif isinstance(event, Stopped):
        # The event is called completed, but `stopped` in its data makes the job cancelled.
        data = {"by": "mam", "stopped": True, "reason": "stopped"}
        ledger_writer.emit(transaction, job, events.COMPLETED, token, event.reason or "", data=data)
    elif isinstance(event, Died):
        _end_job_of_dead_agent(transaction, job, token, event.exit_status)


def _end_job_of_dead_agent(transaction: Transaction, job: Job, token: str, status: int | None) -> None:
    """End the job of a session whose agent is dead, unless the agent has already reported completed."""
    if job.status == JobStatus.CHECKING:
        return
    code = "unknown" if status is None else status
    if prompted_at(transaction, job) is None:
        detail, reason = f"agent bootstrap failed (exit {code})", BOOTSTRAP
    else:
        detail, reason = f"the agent ended without a report (exit {code})", EXITED
    data = {"by": "mam", "reason": reason, "exit_status": status}
    ledger_writer.emit(transaction, job, events.ERROR, token, detail, data=data)


def _rename_in_jobs(transaction: Transaction, row: Row, before: str) -> list[str]:
    """Write the new name of a session into its jobs; return the ids of these jobs."""
    candidates = [*jobs.listed(transaction, only_open=True), *jobs.listed(transaction, session_id=row["id"])]
    changed = {
        job.id: job
        for job in candidates
        if row["id"] in (job.session_id, job.data.get("worker_session_id"))
        and job.data.get("agent_session") == f"tmux:{before}"
    }
    for job in changed.values():
        jobs.update(transaction, job, data={"agent_session": f"tmux:{row['name']}"})
    return list(changed)
