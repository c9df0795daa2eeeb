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


def log_line(entry: Entry) -> Document:
    """Return an entry as a line of a log."""
    return {**entry.document, "event": entry.name, "number": entry.number}


def _write(context: Context, job_id: str) -> None:
    if not context.root.verdict().is_ours:
        # The database of somebody else may name any folder.
        return
    folders = context.registry.peek(lambda transaction: _folders(transaction, job_id), None)
    if folders is None:
        return
    records = folders[0] or context.paths.jobs
    # Earlier versions recorded no audit folder for a job of the original system.
    audit = os.path.join(folders[1] or audit_root(context), job_id)
    with job_files.locked(records):
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


def _folders(transaction: Transaction, job_id: str) -> tuple[str | None, str | None] | None:
    job = jobs.find(transaction, job_id)
    return (job.data.get("registry_dir"), job.data.get("logs_dir")) if job else None


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
