"""Read what happened to a job: from the ledger, or from the audit folder that it left behind."""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs.find import log_of_stranger, unknown
from mam.app.jobs.write_files import line
from mam.core.job_event import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context

    Document = dict[str, Any]

_FOLDER = "delegate_job_logs"


def audit_root(context: Context) -> str:
    """Return the folder that holds the audit folders of jobs."""
    named = context.environ.get("DELEGATE_JOB_LOGS_DIR")
    return os.path.join(context.workspace, named) if named else os.path.join(context.paths.root, _FOLDER)


def logs(context: Context, job_id: str, *, folder: str | None = None) -> Document:
    """Return `{job_id, directory, events}`, oldest first. Reads only."""

    def read(draft: Transaction) -> Document | None:
        job = jobs.find(draft, job_id)
        if job is None:
            return None
        where = os.path.join(job.data.get("logs_dir") or audit_root(context), job_id)
        found = [line(entry) for entry in jobs.entries(draft, job_id)]
        return {"job_id": job_id, "directory": where, "events": found}

    found = context.registry.peek(read, None)
    if found is not None:
        return found
    for root in _roots(context):
        where = os.path.join(root, job_id)
        if os.path.isdir(where):
            events = job_files.read_log(os.path.join(where, "events.ndjson"))
            return {"job_id": job_id, "directory": where, "events": events}
    stranger = log_of_stranger(context, job_id, folder)
    if stranger is None:
        raise unknown(context, job_id)
    return {"job_id": job_id, "directory": stranger[0], "events": stranger[1]}


def list_logs(context: Context) -> list[Document]:
    """Return `{job_id, directory, status, updated_at}` of every audit folder, oldest first. Reads only."""
    found: dict[str, Document] = {}
    for folder in _roots(context):
        for job_id in _names(folder):
            where = os.path.join(folder, job_id)
            known = job_files.read_record(os.path.join(where, "status.json"))
            known = known if isinstance(known, dict) else {}
            kept = {key: known.get(key) for key in ("status", "updated_at")}
            found.setdefault(job_id, {"job_id": job_id, "directory": where, **kept})
    return sorted(found.values(), key=lambda one: (str(one["updated_at"] or ""), one["job_id"]))


def _roots(context: Context) -> list[str]:
    """Return where audit folders may lie: ours, and where later versions of the original put them."""
    return [audit_root(context), os.path.join(context.paths.state, _FOLDER)]


def _names(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if is_job_id(name) and os.path.isdir(os.path.join(folder, name)))
