"""Finds jobs: those of the ledger, and records that the original system left in a folder of jobs.

A foreign record is a file of the original system whose job is not in the ledger yet.
"""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.core.errors import JobNotFound, NotAllowed, Usage
from mam.core.job_event import NAMES, is_job_id
from mam.core.job_file_format import DEFAULTS, parse_record, record
from mam.core.job_rules import OPEN
from mam.core.times import parse_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.session_row import Row

    Document = dict[str, Any]

_OURS, _EARLIER = "/.mam/jobs", ".hermes/jobs"
_REGISTRY = ".hermes/agent-sessions.yaml"
_LISTED_PROMPT = 200
# A repository can contain a foreign record. These fields would let it run, start, write or publish something
# on this machine, so mam does not take them from a foreign record.
_NOT_TAKEN = (
    "broker",
    "logs_dir",
    "max_rounds",
    "permissions",
    "registry_dir",
    "reviewer",
    "reviewer_session",
    "root",
    "type",
    "validate",
)


def registry_of(folder: str | None) -> str | None:
    """Return the registry file of the root that owns this folder of jobs; None for any other folder."""
    if not folder:
        return None
    real = os.path.realpath(folder)
    return os.path.join(real.removesuffix(_OURS), _REGISTRY) if real.endswith(_OURS) else None


def folder_of(context: Context, folder: str | None) -> str:
    """Return the folder of records as an absolute path: the named one, or the root's own."""
    return os.path.realpath(os.path.join(context.workspace, folder)) if folder else context.paths.jobs


def resolve_id(context: Context, job_id: str | None) -> str:
    """Return the id of a job: the one that the caller names, or the job of the agent that calls."""
    resolved = job_id or context.environ.get("MAM_JOB_ID")
    if not resolved:
        raise Usage("name a job", hint="mam job list shows all jobs; an agent that has a job may omit the id")
    if not is_job_id(resolved):
        raise JobNotFound(f"{resolved[:40]!r} is not the id of a job", hint="an id is 8 hex digits")
    return resolved


def documents(context: Context, folder: str | None = None, *, only_open: bool = False) -> list[Document]:
    """Return every job, oldest first, with the beginning of its prompt. Reads only."""
    none: list[tuple[Job, str]] = []
    pairs = context.registry.peek(_jobs_with_prompts, none)
    ledger_ids = {job.id for job, _ in pairs}
    if folder:
        pairs = [(job, prompt) for job, prompt in pairs if job.data.get("registry_dir") == folder]
    listing = [as_document(job, prompt) for job, prompt in pairs]
    listing += [
        summary for summary in _foreign_records(context, folder) if summary["job_id"] not in ledger_ids
    ]
    listing = [summary for summary in listing if not only_open or summary["status"] in OPEN]
    for summary in listing:
        summary["prompt"] = summary["prompt"][:_LISTED_PROMPT]
    # `sorted` is stable: jobs with the same stamp keep the order of the ledger, which is finer than a stamp.
    return sorted(listing, key=lambda summary: summary["created_at"] or "")


def document(context: Context, job_id: str, folder: str | None = None) -> Document:
    """Return one job as its record shows it. Reads only."""
    pair = context.registry.peek(lambda transaction: _job_with_prompt(transaction, job_id), None)
    if pair is not None and folder in (None, pair[0].data.get("registry_dir")):
        return as_document(*pair)
    foreign = _read_record(context, job_id, folder) if pair is None else None
    if foreign is None:
        raise not_found(context, job_id)
    return {key: value for key, value in foreign.items() if key != "auth_token"} | {"auth_token": None}


def as_document(job: Job, prompt: str) -> Document:
    """Return a job of the ledger as its record shows it."""
    return record(
        job.id,
        prompt,
        job.data,
        status=job.status,
        attempt=job.attempt,
        last_seq=job.last_seq,
        session_id=job.session_id,
        created_at=job.created_at,
        updated_at=job.updated_at,
        last_event_at=job.last_event_at,
    )


def ensure_in_ledger(context: Context, job_id: str, folder: str | None = None) -> None:
    """Ensure that a job is in the ledger; import a foreign record with its token and its log."""
    if not context.paths.exists() and not _read_record(context, job_id, folder):
        raise not_found(context, job_id)
    if context.registry.peek(lambda transaction: jobs.find(transaction, job_id), None) is not None:
        return
    record_document = _read_record(context, job_id, folder)
    if record_document is None:
        raise not_found(context, job_id)
    if record_document["root"] not in (None, context.paths.root):
        raise NotAllowed(
            f"job {job_id} belongs to the root {record_document['root']}",
            hint=f"--workspace {record_document['root']}",
        )
    token = record_document.pop("auth_token")
    if token:
        job_files.new_token(context.paths.jobs, job_id, token)
    source = _folder_with(context, job_id, folder)
    log = job_files.read_log(_log_in(source, job_id))
    facts = {**DEFAULTS, **{key: record_document[key] for key in DEFAULTS if key not in _NOT_TAKEN}}
    facts |= {"registry_dir": source, "root": context.paths.root}
    context.registry.note(lambda transaction: _add_record(transaction, record_document, facts, log))


def log_of_foreign_record(
    context: Context, job_id: str, folder: str | None
) -> tuple[str, list[Document]] | None:
    """Return the folder of a foreign record, and the log beside the record; None without such a record."""
    if _read_record(context, job_id, folder) is None:
        return None
    source = _folder_with(context, job_id, folder)
    return source, job_files.read_log(_log_in(source, job_id))


def is_open(context: Context, job_id: str | None) -> bool:
    """Tell whether a job has not ended."""
    return bool(job_id) and job_id in open_job_ids(context)


def open_job_ids(context: Context) -> set[str]:
    """Return the ids of the jobs that are open."""
    none: set[str] = set()
    return context.registry.peek(jobs.open_ids, none)


def open_job(context: Context, transaction: Transaction, row: Row) -> tuple[Job, str] | None:
    """Return the open job that a session works on, and its token."""
    job_id = row.get("delegate_job_id")
    job = jobs.find(transaction, job_id) if job_id else None
    if job is None or job.status not in OPEN or job.session_id != row["id"]:
        return None
    return job, job_files.signing_token(context.paths.jobs, job.id)


def token_of(context: Context, job_id: str) -> str:
    """Return the token of a job of the ledger, which signs its events."""
    token = job_files.read_token(context.paths.jobs, job_id)
    if token is None:
        raise NotAllowed(
            f"the token of job {job_id} is not in {context.paths.jobs}",
            hint="cancel the job and submit it again",
        )
    return token


def not_found(context: Context, job_id: str) -> JobNotFound:
    """Return the error for a job that this root does not have."""
    return JobNotFound(
        f"there is no job {job_id} in {context.paths.root}", hint="mam job list shows all jobs"
    )


def _jobs_with_prompts(transaction: Transaction) -> list[tuple[Job, str]]:
    return [(job, jobs.prompt_of(transaction, job.id)) for job in jobs.listed(transaction)]


def _job_with_prompt(transaction: Transaction, job_id: str) -> tuple[Job, str] | None:
    job = jobs.find(transaction, job_id)
    return (job, jobs.prompt_of(transaction, job_id)) if job else None


def _folders(context: Context, folder: str | None) -> list[str]:
    return [folder] if folder else [context.paths.jobs, os.path.join(context.paths.root, _EARLIER)]


def _folder_with(context: Context, job_id: str, folder: str | None) -> str:
    places = _folders(context, folder)
    return next(
        (place for place in places if os.path.exists(os.path.join(place, f"{job_id}.json"))), places[0]
    )


def _read_record(context: Context, job_id: str, folder: str | None) -> Document | None:
    path = os.path.join(_folder_with(context, job_id, folder), f"{job_id}.json")
    record_document = parse_record(job_files.read_record(path))
    return record_document if record_document and record_document["job_id"] == job_id else None


def _foreign_records(context: Context, folder: str | None) -> list[Document]:
    ids = {
        name for place in _folders(context, folder) for name in job_files.record_ids(place) if is_job_id(name)
    }
    records = [content for job_id in sorted(ids) if (content := _read_record(context, job_id, folder))]
    return [{**content, "auth_token": None} for content in records]


def _log_in(folder: str, job_id: str) -> str:
    return os.path.join(folder, f"{job_id}.events.log")


def _add_record(
    transaction: Transaction, record_document: Document, facts: Document, log: list[Document]
) -> None:
    if jobs.find(transaction, record_document["job_id"]) is not None:
        return
    created = parse_stamp(record_document["created_at"])
    job = jobs.add(
        transaction,
        record_document["job_id"],
        record_document["prompt"],
        facts,
        status=record_document["status"],
        attempt=record_document["attempt"],
        last_seq=record_document["last_seq"],
        ended_seq=None if record_document["status"] in OPEN else record_document["last_seq"],
        created_at=transaction.now if created is None else created,
    )
    for event in log:
        if event.get("event") in NAMES and isinstance(event.get("data"), dict):
            jobs.add_entry(transaction, job.id, event["event"], {**event, "seq": 0}, attempt=job.attempt)
