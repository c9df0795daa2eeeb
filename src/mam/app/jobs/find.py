"""Finding jobs: those of the ledger, and records that the original system left in a folder of jobs."""

from __future__ import annotations

import os

from mam.adapters.store.files import job_files
from mam.adapters.store.tables import jobs
from mam.core.errors import JobNotFound, NotAllowed, Usage
from mam.core.job import OPEN
from mam.core.job_event import NAMES, is_job_id
from mam.core.job_record import DEFAULTS, parse_record, record
from mam.core.times import parse_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.jobs import Job
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context

    Document = dict[str, Any]

_OURS, _EARLIER = "/.mam/jobs", ".hermes/jobs"
_REGISTRY = ".hermes/agent-sessions.yaml"
_LISTED_PROMPT = 200
# A repository can carry a record: nothing is run, started, written elsewhere or published for what one says.
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
    """Return the registry file of the root whose own folder of jobs this is; None for any other folder."""
    if not folder:
        return None
    real = os.path.realpath(folder)
    return os.path.join(real.removesuffix(_OURS), _REGISTRY) if real.endswith(_OURS) else None


def folder_of(context: Context, folder: str | None) -> str:
    """Return the folder of records that is meant, as an absolute path."""
    return os.path.realpath(os.path.join(context.workspace, folder)) if folder else context.paths.jobs


def meant(context: Context, job_id: str | None) -> str:
    """Return the id of the job that is meant: the one that is named, or the agent's own."""
    found = job_id or context.environ.get("MAM_JOB_ID")
    if not found:
        raise Usage("name a job", hint="mam job list shows them; inside an agent its own is meant")
    if not is_job_id(found):
        raise JobNotFound(f"{found[:40]!r} is not the id of a job", hint="an id is 8 of 0-9 and a-f")
    return found


def documents(context: Context, folder: str | None = None, *, only_open: bool = False) -> list[Document]:
    """Return every job, oldest first, with the beginning of its prompt. Reads only."""
    none: list[tuple[Job, str]] = []
    found = context.registry.peek(_listed, none)
    known = {job.id for job, _ in found}
    if folder:
        found = [(job, prompt) for job, prompt in found if job.data.get("registry_dir") == folder]
    listed = [as_document(job, prompt) for job, prompt in found]
    listed += [one for one in _strangers(context, folder) if one["job_id"] not in known]
    listed = [one for one in listed if not only_open or one["status"] in OPEN]
    for one in listed:
        one["prompt"] = one["prompt"][:_LISTED_PROMPT]
    # The order of the ledger is finer than a stamp.
    return sorted(listed, key=lambda one: one["created_at"] or "")


def document(context: Context, job_id: str, folder: str | None = None) -> Document:
    """Return one job as its record shows it. Reads only."""
    found = context.registry.peek(lambda draft: _one(draft, job_id), None)
    if found is not None and folder in (None, found[0].data.get("registry_dir")):
        return as_document(*found)
    stranger = _read(context, job_id, folder) if found is None else None
    if stranger is None:
        raise unknown(context, job_id)
    return {key: value for key, value in stranger.items() if key != "auth_token"} | {"auth_token": None}


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


def enrol(context: Context, job_id: str, folder: str | None = None) -> None:
    """See that a job is in the ledger: a record of the original is taken in, with its token and log."""
    if not context.paths.exists() and not _read(context, job_id, folder):
        raise unknown(context, job_id)
    if context.registry.peek(lambda draft: jobs.find(draft, job_id), None) is not None:
        return
    found = _read(context, job_id, folder)
    if found is None:
        raise unknown(context, job_id)
    if found["root"] not in (None, context.paths.root):
        raise NotAllowed(f"job {job_id} is one of {found['root']}", hint=f"--workspace {found['root']}")
    token = found.pop("auth_token")
    if token:
        job_files.new_token(context.paths.jobs, job_id, token)
    where = _folder_with(context, job_id, folder)
    log = job_files.read_log(_log_in(where, job_id))
    facts = {**DEFAULTS, **{key: found[key] for key in DEFAULTS if key not in _NOT_TAKEN}}
    facts |= {"registry_dir": where, "root": context.paths.root}
    context.registry.note(lambda draft: _take_in(draft, found, facts, log))


def log_of_stranger(context: Context, job_id: str, folder: str | None) -> tuple[str, list[Document]] | None:
    """Return the folder of a record that is not in the ledger, and the log beside it."""
    if _read(context, job_id, folder) is None:
        return None
    where = _folder_with(context, job_id, folder)
    return where, job_files.read_log(_log_in(where, job_id))


def token_of(context: Context, job_id: str) -> str:
    """Return the token of a job of the ledger; without it nothing can be signed."""
    found = job_files.read_token(context.paths.jobs, job_id)
    if found is None:
        raise NotAllowed(
            f"the token of job {job_id} is not in {context.paths.jobs}",
            hint="the job can be cancelled and submitted anew",
        )
    return found


def unknown(context: Context, job_id: str) -> JobNotFound:
    """Return the error for a job that is not here."""
    return JobNotFound(f"there is no job {job_id} in {context.paths.root}", hint="mam job list shows them")


def _listed(draft: Transaction) -> list[tuple[Job, str]]:
    return [(job, jobs.prompt_of(draft, job.id)) for job in jobs.listed(draft)]


def _one(draft: Transaction, job_id: str) -> tuple[Job, str] | None:
    job = jobs.find(draft, job_id)
    return (job, jobs.prompt_of(draft, job_id)) if job else None


def _folders(context: Context, folder: str | None) -> list[str]:
    return [folder] if folder else [context.paths.jobs, os.path.join(context.paths.root, _EARLIER)]


def _folder_with(context: Context, job_id: str, folder: str | None) -> str:
    places = _folders(context, folder)
    return next((one for one in places if os.path.exists(os.path.join(one, f"{job_id}.json"))), places[0])


def _read(context: Context, job_id: str, folder: str | None) -> Document | None:
    path = os.path.join(_folder_with(context, job_id, folder), f"{job_id}.json")
    found = parse_record(job_files.read_record(path))
    return found if found and found["job_id"] == job_id else None


def _strangers(context: Context, folder: str | None) -> list[Document]:
    ids = {
        one for place in _folders(context, folder) for one in job_files.record_ids(place) if is_job_id(one)
    }
    found = [one for job_id in sorted(ids) if (one := _read(context, job_id, folder))]
    return [{**one, "auth_token": None} for one in found]


def _log_in(folder: str, job_id: str) -> str:
    return os.path.join(folder, f"{job_id}.events.log")


def _take_in(draft: Transaction, found: Document, facts: Document, log: list[Document]) -> None:
    if jobs.find(draft, found["job_id"]) is not None:
        return
    created = parse_stamp(found["created_at"])
    job = jobs.add(
        draft,
        found["job_id"],
        found["prompt"],
        facts,
        status=found["status"],
        attempt=found["attempt"],
        last_seq=found["last_seq"],
        ended_seq=None if found["status"] in OPEN else found["last_seq"],
        created_at=draft.now if created is None else created,
    )
    for event in log:
        if event.get("event") in NAMES and isinstance(event.get("data"), dict):
            jobs.enter(draft, job.id, event["event"], {**event, "seq": 0}, attempt=job.attempt)
