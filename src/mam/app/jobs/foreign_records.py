"""Foreign records: files of jobs that the original system left, and whose jobs are not in the ledger yet."""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files
from mam.core.job_event import is_job_id
from mam.core.job_file_format import parse_record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.app.context.context import Context

    Document = dict[str, Any]

_EARLIER = ".hermes/jobs"


def foreign_records(context: Context, folder: str | None, known: Collection[str]) -> list[Document]:
    """Return all foreign records of a folder of jobs, without their tokens.

    Warn of each file that is no record, unless its job is among the known ones.
    """
    ids = {
        name for place in _folders(context, folder) for name in job_files.record_ids(place) if is_job_id(name)
    }
    records = []
    for job_id in sorted(ids):
        if content := read_record(context, job_id, folder):
            records.append({**content, "auth_token": None})
        elif job_id not in known:
            path = os.path.join(folder_with(context, job_id, folder), f"{job_id}.json")
            context.warn(f"{path} is not listed: it needs schema_version 1, its job_id, and a known status")
    return records


def read_record(context: Context, job_id: str, folder: str | None) -> Document | None:
    """Return the foreign record of a job; None if there is none, or if it names another job."""
    path = os.path.join(folder_with(context, job_id, folder), f"{job_id}.json")
    record_document = parse_record(job_files.read_record(path))
    return record_document if record_document and record_document["job_id"] == job_id else None


def log_of_foreign_record(
    context: Context, job_id: str, folder: str | None
) -> tuple[str, list[Document]] | None:
    """Return the folder of a foreign record, and the log beside the record; None without such a record."""
    if read_record(context, job_id, folder) is None:
        return None
    source = folder_with(context, job_id, folder)
    return source, job_files.read_log(log_in(source, job_id))


def folder_with(context: Context, job_id: str, folder: str | None) -> str:
    """Return the folder that holds the record of a job; the first one if none does."""
    places = _folders(context, folder)
    return next(
        (place for place in places if os.path.exists(os.path.join(place, f"{job_id}.json"))), places[0]
    )


def log_in(folder: str, job_id: str) -> str:
    """Return the path of the log beside a record."""
    return os.path.join(folder, f"{job_id}.events.log")


def _folders(context: Context, folder: str | None) -> list[str]:
    return [folder] if folder else [context.paths.jobs, os.path.join(context.paths.root, _EARLIER)]
