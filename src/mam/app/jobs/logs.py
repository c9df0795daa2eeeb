"""Reads what happened to a job: from the ledger, or from the audit folder that the job left behind."""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.app.jobs.find import not_found
from mam.app.jobs.foreign_records import log_of_foreign_record
from mam.app.jobs.write_job_files import AUDITS, audit_root, log_line, write_lost_files
from mam.core.errors import Refused
from mam.core.job_event import is_job_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context

    Document = dict[str, Any]


def logs(context: Context, job_id: str, *, folder: str | None = None) -> Document:
    """Return `{job_id, directory, events}`, oldest first. Lost files of the job are written again."""

    def read(transaction: Transaction) -> Document | None:
        job = jobs.find(transaction, job_id)
        if job is None:
            return None
        directory = os.path.join(job.data.get("logs_dir") or audit_root(context), job_id)
        lines = [log_line(entry) for entry in jobs.entries(transaction, job_id)]
        return {"job_id": job_id, "directory": directory, "events": lines}

    result = context.registry.peek(read, None)
    if result is not None:
        write_lost_files(context, job_id)
        return result
    for root in _roots(context):
        directory = os.path.join(root, job_id)
        if os.path.isdir(directory):
            events = job_files.read_log(os.path.join(directory, "events.ndjson"))
            return {"job_id": job_id, "directory": directory, "events": events}
    foreign = log_of_foreign_record(context, job_id, folder)
    if foreign is None:
        raise not_found(context, job_id)
    return {"job_id": job_id, "directory": foreign[0], "events": foreign[1]}


def output(context: Context, job_id: str, *, attempt: int | None = None) -> Document:
    """Return `{job_id, attempt, file, output}`: what the command of a job wrote, as bytes. Reads only."""
    from mam.adapters.store.files import exec_files
    from mam.app.jobs.command_end import output_path

    context.require_own_root()
    job = context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None)
    if job is None:
        raise not_found(context, job_id)
    if not job.data.get("command"):
        raise Refused(
            f"job {job_id} has no output: it was not submitted with --exec",
            hint=f"mam job logs {job_id} shows its events",
        )
    # A reviewer has no output; the command of its round is the attempt before.
    attempts = [attempt] if attempt else range(job.attempt, 0, -1)
    for number in attempts:
        path = output_path(context, job, number)
        content = exec_files.read_output(path)
        if content is not None:
            return {"job_id": job_id, "attempt": number, "file": path, "output": content}
    raise Refused(
        f"job {job_id} has no output yet", hint=f"mam job status {job_id} shows whether its command runs"
    )


def list_logs(context: Context) -> list[Document]:
    """Return `{job_id, directory, status, updated_at}` of every audit folder, oldest first.

    Those of jobs in the ledger that are lost are written again.
    """
    context.warn_of_root()
    write_lost_files(context)
    listing: dict[str, Document] = {}
    for folder in _roots(context):
        for job_id in _names(folder):
            directory = os.path.join(folder, job_id)
            status = job_files.read_record(os.path.join(directory, "status.json"))
            status = status if isinstance(status, dict) else {}
            summary = {key: status.get(key) for key in ("status", "updated_at")}
            listing.setdefault(job_id, {"job_id": job_id, "directory": directory, **summary})
    return sorted(listing.values(), key=lambda entry: (str(entry["updated_at"] or ""), entry["job_id"]))


def _roots(context: Context) -> list[str]:
    """Return where audit folders may be: mam's own place, and that of later versions of the original."""
    return [audit_root(context), os.path.join(context.paths.state, AUDITS)]


def _names(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if is_job_id(name) and os.path.isdir(os.path.join(folder, name)))
