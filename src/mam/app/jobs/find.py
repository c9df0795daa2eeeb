"""Finds jobs: those of the ledger, and foreign records."""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs, set_aside
from mam.app.context.setting_aside import JOB
from mam.app.jobs.foreign_records import foreign_records, read_record
from mam.core.errors import JobNotFound, NotAllowed, Usage
from mam.core.job_event import is_job_id
from mam.core.job_file_format import record
from mam.core.job_rules import OPEN
from mam.core.root_state import RootState
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.jobs import Job
    from mam.app.context.context import Context
    from mam.core.errors import RootRefused
    from mam.core.session_row import Row

    Document = dict[str, Any]

_OURS = "/.mam/jobs"
_REGISTRY = ".hermes/agent-sessions.yaml"
_LISTED_PROMPT = 200


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


def running_session_of(context: Context, job_id: str) -> Row | None:
    """Return the running session that works on a job, also before the job could record it."""
    rows = context.registry.view().rows
    return next((row for row in rows if row.get("delegate_job_id") == job_id and is_running(row)), None)


def documents(context: Context, folder: str | None = None, *, only_open: bool = False) -> list[Document]:
    """Return every job, oldest first, with the beginning of its prompt. Reads only."""
    context.warn_of_root()
    none: list[tuple[Job, str]] = []
    pairs = context.registry.peek(_jobs_with_prompts, none)
    reasons = _set_aside(context)
    ledger_ids = {job.id for job, _ in pairs}
    if folder:
        pairs = [(job, prompt) for job, prompt in pairs if job.data.get("registry_dir") == folder]
    listing = [_shown(job, prompt, reasons) for job, prompt in pairs]
    listing += [
        summary
        for summary in foreign_records(context, folder, ledger_ids)
        if summary["job_id"] not in ledger_ids
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
        return _shown(*pair, _set_aside(context))
    foreign = read_record(context, job_id, folder) if pair is None else None
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


def _shown(job: Job, prompt: str, reasons: dict[str, str]) -> Document:
    """Return a job as verbs show it: one that mam cannot work on has the reason in `set_aside`."""
    shown = as_document(job, prompt)
    reason = reasons.get(job.id) if job.status in OPEN else None
    reason = job.flaw or reason
    return shown if reason is None else {**shown, "set_aside": reason}


def _set_aside(context: Context) -> dict[str, str]:
    """Return why mam does not work on jobs, by their ids."""
    none: list[set_aside.SetAside] = []
    items = context.registry.peek(lambda transaction: set_aside.listed(transaction, JOB), none)
    return {item.key: item.reason for item in items}


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
        is_running = is_open(context, job_id)
        raise NotAllowed(
            f"the token of job {job_id} is not in {context.paths.jobs}",
            hint="cancel the job and submit it again"
            if is_running
            else f"the job has ended: mam job status {job_id}",
        )
    return token


def not_found(context: Context, job_id: str) -> JobNotFound | RootRefused:
    """Return the error for a job that this root does not have, or for a root whose state is gone."""
    if context.root.verdict().state == RootState.MISSING:
        refusal = context.root.refusal()
        assert refusal is not None
        return refusal
    return JobNotFound(
        f"there is no job {job_id} in {context.paths.root}", hint="mam job list shows all jobs"
    )


def _jobs_with_prompts(transaction: Transaction) -> list[tuple[Job, str]]:
    return [(job, jobs.prompt_of(transaction, job.id)) for job in jobs.listed(transaction)]


def _job_with_prompt(transaction: Transaction, job_id: str) -> tuple[Job, str] | None:
    job = jobs.find(transaction, job_id)
    return (job, jobs.prompt_of(transaction, job_id)) if job else None
