"""Writes the files of a job: its record, its log and its audit folder.

The files only show what the database has committed. If they cannot be written, the job continues, and the
next entry writes them.
"""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files, script_file
from mam.adapters.store.tables import jobs
from mam.app.jobs.find import as_document
from mam.core.errors import MamError
from mam.core.job_file_format import line_for_file
from mam.core.job_rules import ENDED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Entry, Job
    from mam.app.context.context import Context

    Document = dict[str, Any]

_META = (
    "schema_version",
    "job_id",
    "created_at",
    "prompt",
    "agent",
    "agent_session",
    "type",
    "workdir",
    "command",
    "timeout_sec",
    "idle_timeout_sec",
    "expected_artifacts",
    "validate",
    "reviewer",
    "max_rounds",
    "permissions",
    "created_by",
    "registry_dir",
    "root",
)
AUDITS = "delegate_job_logs"
_IGNORE = "# Made by mam: the audit of jobs is state of this machine.\n*\n"


def audit_root(context: Context) -> str:
    """Return the folder that holds the audit folders of jobs."""
    configured = context.environ.get("DELEGATE_JOB_LOGS_DIR")
    return (
        os.path.join(context.workspace, configured)
        if configured
        else os.path.join(context.paths.root, AUDITS)
    )


def write_files(context: Context, job_id: str) -> None:
    """Write the files of a job, and forget the script of one that has ended; a failure is only a warning."""
    try:
        _write(context, job_id)
        _forget_script(context, job_id)
    except MamError as error:
        context.warn(f"the files of job {job_id} are not up to date: {error}")


def write_lost_files(context: Context, job_id: str | None = None) -> None:
    """Write the files of a job again, or of all jobs, where one is missing; do nothing in another's root.

    This looks for each file, so no verb does it that runs often.
    """
    if not context.root.verdict().is_ours:
        return
    for lost in lost_files(context, job_id):
        write_files(context, lost)


def lost_files(context: Context, job_id: str | None = None) -> list[str]:
    """Return the ids of the jobs, or the id of this one, of which a file is missing."""

    def read(transaction: Transaction) -> list[Job]:
        if job_id is None:
            return jobs.listed(transaction)
        job = jobs.find(transaction, job_id)
        return [] if job is None else [job]

    none: list[Job] = []
    found = context.registry.peek(read, none)
    return [job.id for job in found if not all(map(os.path.lexists, _files_of(context, job)))]


def _files_of(context: Context, job: Job) -> list[str]:
    records, audit = _folders_of(context, job)
    shown = (os.path.join(records, f"{job.id}{ending}") for ending in (".json", ".events.log"))
    return [*shown, *(os.path.join(audit, name) for name in ("meta.json", "events.ndjson", "status.json"))]


def _folders_of(context: Context, job: Job) -> tuple[str, str]:
    """Return the folder of records and the audit folder of a job."""
    # Earlier versions recorded no audit folder for a job of the original system.
    logs = job.data.get("logs_dir") or audit_root(context)
    return job.data.get("registry_dir") or context.paths.jobs, os.path.join(logs, job.id)


def log_line(entry: Entry) -> Document:
    """Return an entry as a line of a log."""
    return {**entry.document, "event": entry.name, "number": entry.number}


def _write(context: Context, job_id: str) -> None:
    if not context.root.verdict().is_ours:
        # The database of somebody else may name any folder.
        return
    job = context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
    if job is None:
        return
    records, audit = _folders_of(context, job)
    with job_files.locked(records):
        if context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None) is None:
            # It was removed while this process waited for the lock.
            return
        log = os.path.join(records, f"{job_id}.events.log")
        document = _append_new_entries(context, job_id, log)
        job_files.replace(os.path.join(records, f"{job_id}.json"), document)
        _make_audit_folder(audit)
        _write_audit(audit, _append_new_entries(context, job_id, os.path.join(audit, "events.ndjson")))


def _forget_script(context: Context, job_id: str) -> None:
    """Delete the copy of the script of a job that has ended, and what a killed check left of it."""
    job = context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
    root_id = context.root_id
    if job is None or not job.data.get("validate") or job.status not in ENDED or root_id is None:
        return
    if context.user_state.script_of(root_id, job_id) is not None:
        context.user_state.forget_script(root_id, job_id)
        script_file.discard(context.user_state.folder, (root_id, job_id))


def _append_new_entries(context: Context, job_id: str, log: str) -> Document:
    """Append the entries that a log does not have yet; return the job's state after the last one."""
    job, prompt, entries = _read_since(context, job_id, job_files.last_number(log))
    job_files.append(log, [line_for_file(log_line(entry), entry.size) for entry in entries])
    return as_document(job, prompt)


def _make_audit_folder(folder: str) -> None:
    if os.path.isdir(folder):
        return
    job_files.make_folder(os.path.dirname(folder))
    _write_gitignore(os.path.join(os.path.dirname(folder), ".gitignore"))
    job_files.make_folder(folder)


def _write_audit(folder: str, document: Document) -> None:
    meta = os.path.join(folder, "meta.json")
    if not os.path.exists(meta):
        job_files.replace(meta, {key: document[key] for key in _META})
    status = {key: value for key, value in document.items() if key not in _META or key == "job_id"}
    job_files.replace(os.path.join(folder, "status.json"), status)


def _read_since(context: Context, job_id: str, after: int) -> tuple[Job, str, list[Entry]]:
    def read(transaction: Transaction) -> tuple[Job, str, list[Entry]] | None:
        job = jobs.find(transaction, job_id)
        if job is None:
            return None
        return job, jobs.prompt_of(transaction, job_id), jobs.entries(transaction, job_id, after)

    result = context.registry.peek(read, None)
    assert result is not None
    return result


def _write_gitignore(path: str) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError:
        return
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(_IGNORE)
