"""Removes a job that has ended: its files, and then its rows, which tell what is still to be removed."""

from __future__ import annotations

import os

from mam.adapters.agents import delete_files
from mam.adapters.store.files import job_files, message_files, script_file
from mam.adapters.store.tables import jobs, messages
from mam.adapters.store.tables.removals import FORGET_JOB
from mam.app.jobs.write_job_files import audit_root
from mam.core.job_rules import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context

_ENDINGS = (".json", ".events.log", ".exec", ".token")


def is_removable(context: Context, job: Job) -> bool:
    """Tell whether a job has ended and its record lies in this root; any other folder belongs to others."""
    folder = job.data.get("registry_dir")
    return job.status in ENDED and (not folder or os.path.realpath(folder) == context.paths.jobs)


def remove(context: Context, job_id: str, *, forgotten_by: str | None = None) -> bool:
    """Remove a job with all that it left; return False for a job that is kept. No link is followed.

    `forgotten_by` names who forgets it. Then the messages with its task go, too, and the log has an entry,
    by which the job leaves the copies of the state.
    """
    job = context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
    if job is None or not is_removable(context, job):
        return False
    # The folders of jobs may be gone with the rest of their parents.
    with job_files.locked(context.paths.jobs):
        delete_files.remove(job.data.get("logs_dir") or audit_root(context), job_id)
        for ending in _ENDINGS:
            delete_files.remove(context.paths.jobs, f"{job_id}{ending}")
    root_id = context.root_id
    if root_id is not None and context.user_state.script_of(root_id, job_id) is not None:
        context.user_state.forget_script(root_id, job_id)
        script_file.discard(context.user_state.folder, (root_id, job_id))
    if forgotten_by is not None:
        _remove_message_files(context, job_id)
    while not context.registry.note(lambda transaction: _remove_rows(transaction, job_id, forgotten_by)):
        pass
    return True


def _remove_message_files(context: Context, job_id: str) -> None:
    none: list[tuple[str, str]] = []
    sent = context.registry.peek(
        lambda transaction: messages.ids_of_job(transaction.connection, job_id), none
    )
    workspaces = {
        row["id"]: row["workspace"] for row in context.registry.view_to_show().rows if row.get("id")
    }
    for message_id, session_id in sent:
        if session_id in workspaces:
            message_files.remove(workspaces[session_id], [message_id])


def _remove_rows(transaction: Transaction, job_id: str, forgotten_by: str | None) -> bool:
    """Delete some rows of a job; return True once all are deleted. A short transaction delays nobody."""
    is_done = jobs.remove_ended(transaction, job_id, most=200)
    if is_done and forgotten_by is not None:
        messages.remove_of_job(transaction.connection, job_id)
        transaction.log(forgotten_by, FORGET_JOB, None, None, job=job_id)
    return is_done
