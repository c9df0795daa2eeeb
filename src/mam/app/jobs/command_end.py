"""Ends a job by how its command ended, as the runner in the pane has recorded it."""

from __future__ import annotations

import os
from contextlib import suppress
from signal import SIGKILL

from mam.adapters.store.files import exec_files, job_files
from mam.adapters.store.tables import jobs
from mam.adapters.system import process
from mam.app.context import claims
from mam.app.context.liveness import identity_of
from mam.app.jobs import ledger_writer
from mam.app.jobs.write_job_files import audit_root
from mam.core import command_end as ends
from mam.core import job_event as events
from mam.core.errors import NotAllowed
from mam.core.job_rules import EXEC, OPEN, JobStatus, runs_command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.session_row import Row


def output_path(context: Context, job: Job, attempt: int | None = None) -> str:
    """Return where the output of an attempt is, or of the current one."""
    audit = os.path.join(job.data.get("logs_dir") or audit_root(context), job.id)
    return exec_files.output_file(audit, attempt or job.attempt)


def recorded_end(context: Context, job: Job, attempt: int | None = None) -> ends.CommandEnd | None:
    """Return how the command of an attempt, or of the current one, ended; None if no end is recorded."""
    content = exec_files.read_record(context.paths.jobs, job.id, attempt or job.attempt)
    return None if content is None else ends.parse(content)


def end_of_session(context: Context, transaction: Transaction, row: Row) -> ends.CommandEnd | None:
    """Return how the command of a session ended; None if no end is recorded, or no command ran there."""
    job = jobs.find(transaction, row.get("delegate_job_id") or "")
    if row["agent"] != EXEC or job is None:
        return None
    # The session of the next round runs before the job names it.
    is_next = job.session_id not in (None, row["id"])
    return recorded_end(context, job, job.attempt + is_next)


def end_in_pane(row: Row, exit_status: int | None) -> ends.CommandEnd | None:
    """Return the end of a session's command by the status of its dead pane; None if that tells nothing."""
    end = ends.without_record(exit_status)
    return end if row["agent"] == EXEC and end.reason != ends.RUNNER_GONE else None


def end_if_recorded(context: Context, transaction: Transaction, job: Job) -> bool:
    """End an open job whose command has a recorded end; False if there is none."""
    end = recorded_end(context, job)
    if end is None:
        return False
    _end(context, transaction, job, end)
    return True


def end_of_dead_session(context: Context, transaction: Transaction, job: Job, row: Row) -> None:
    """End an open job whose session has ended; without a record the status of its pane counts.

    A runner that was killed may leave the command running. It is ended, because nobody watches it any more.
    """
    if end_if_recorded(context, transaction, job):
        return
    end = ends.without_record(row.get("exit_status"))
    _end(context, transaction, job, end)
    leader = identity_of(row)
    if leader is not None and end.reason == ends.RUNNER_GONE:
        transaction.after_commit(lambda: _kill_orphans(leader))


def _end(context: Context, transaction: Transaction, job: Job, end: ends.CommandEnd) -> None:
    if job.status not in OPEN or job.status == JobStatus.CHECKING:
        return
    token = job_files.signing_token(context.paths.jobs, job.id)
    detail = end.detail(exec_files.last_line(output_path(context, job)))
    data = {"by": "mam", **end.facts()}
    if end.is_success:
        ledger_writer.report(transaction, job, events.COMPLETED, token, detail, data=data)
    else:
        ledger_writer.emit(transaction, job, events.ERROR, token, detail, data=data)


def end_now(context: Context, job_id: str, attempt: int, row: Row | None) -> bool:
    """End a job by the record of an attempt, or because its session has ended; False if it goes on.

    A command that a stop is ending records an end as well; the stop, or its recovery, then ends the job.
    """

    def work(transaction: Transaction) -> bool:
        job = jobs.find(transaction, job_id)
        if job is None or job.attempt != attempt or job.status not in OPEN or not runs_command(job.data):
            return False
        if claims.is_being_ended(transaction, job.session_id):
            return False
        if row is None:
            return end_if_recorded(context, transaction, job)
        end_of_dead_session(context, transaction, job, row)
        return True

    return context.registry.note(work)


def _kill_orphans(leader: process.Identity) -> None:
    for identity in process.orphans_of(leader):
        with suppress(NotAllowed):
            # A process of another user, as below sudo, must not keep the others alive.
            process.signal(identity, SIGKILL)
