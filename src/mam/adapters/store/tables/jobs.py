"""Jobs and the log of what happened to each: the ledger that brokers and files only speak of."""

from __future__ import annotations

import json

from mam.adapters.store.transaction import dump
from mam.core.job import JobStatus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.adapters.store.transaction import Transaction

    Event = dict[str, Any]

_FIELDS = (
    "id",
    "status",
    "attempt",
    "last_seq",
    "ended_seq",
    "session_id",
    "created_at",
    "updated_at",
    "last_event_at",
    "data",
)
_OPEN = "status IN ('pending', 'running', 'checking')"


class Job:
    """One job as it stands. What is asked for and what else is known is in `data`; the prompt is apart."""

    id: str
    status: JobStatus
    attempt: int
    last_seq: int
    ended_seq: int | None
    session_id: str | None
    created_at: float
    updated_at: float
    last_event_at: float
    data: dict[str, Any]

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Take a row of the table."""
        facts = dict(zip(_FIELDS, values, strict=True))
        facts["data"] = json.loads(facts["data"])
        self.__dict__.update(facts)


class Entry:
    """One entry of a job's log: `number` is its place in the log of all jobs."""

    __slots__ = ("at", "document", "job_id", "name", "number")

    def __init__(self, number: int, job_id: str, name: str, at: float, payload: str) -> None:
        """`name` is what the log calls it, which for a `checking` is not what is published."""
        self.number = number
        self.job_id = job_id
        self.name = name
        self.at = at
        self.document: Event = json.loads(payload)


def add(draft: Transaction, job_id: str, prompt: str, data: dict[str, Any], **fields: Any) -> Job:
    """Record a new job."""
    facts = {
        "status": JobStatus.PENDING,
        "attempt": 1,
        "last_seq": 0,
        "ended_seq": None,
        "session_id": None,
        "created_at": draft.now,
        "updated_at": draft.now,
        "last_event_at": draft.now,
        **fields,
    }
    names = ("id", *facts, "data")
    draft.connection.execute(
        f"INSERT INTO jobs({', '.join(names)}) VALUES({', '.join('?' * len(names))})",
        (job_id, *facts.values(), dump(data)),
    )
    draft.connection.execute("INSERT INTO job_prompts VALUES(?, ?)", (job_id, prompt))
    found = find(draft, job_id)
    assert found is not None
    return found


def find(draft: Transaction, job_id: str) -> Job | None:
    """Return one job."""
    found = draft.connection.execute(f"{_SELECT} WHERE id=?", (job_id,)).fetchone()
    return Job(found) if found else None


def prompt_of(draft: Transaction, job_id: str) -> str:
    """Return what a job is about."""
    found = draft.connection.execute("SELECT prompt FROM job_prompts WHERE job_id=?", (job_id,)).fetchone()
    return str(found[0]) if found else ""


def listed(draft: Transaction, *, only_open: bool = False, session_id: str | None = None) -> list[Job]:
    """Return jobs, oldest first: all, those that are open, those of one session."""
    conditions = [_OPEN] if only_open else []
    conditions += ["session_id=?"] if session_id is not None else []
    which = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    values = () if session_id is None else (session_id,)
    found = draft.connection.execute(f"{_SELECT}{which} ORDER BY created_at, id", values)
    return [Job(values) for values in found]


def open_ids(draft: Transaction) -> set[str]:
    """Return the ids of the jobs that have not ended."""
    return {job_id for (job_id,) in draft.connection.execute(f"SELECT id FROM jobs WHERE {_OPEN}")}  # noqa: S608


def statuses(draft: Transaction, job_ids: Collection[str]) -> dict[str, tuple[str, float | None]]:
    """Return the status of each of these jobs that is known, and when its agent was reminded of it."""
    marks = ", ".join("?" * len(job_ids))
    query = f"SELECT id, status, json_extract(data, '$.nudged_at') FROM jobs WHERE id IN ({marks})"  # noqa: S608
    found = draft.connection.execute(query, tuple(job_ids)).fetchall()
    return {job_id: (status, nudged) for job_id, status, nudged in found}


def update(draft: Transaction, job: Job, **fields: Any) -> Job:
    """Change what is known of a job; `data` is given as what is to be changed in it."""
    if "data" in fields:
        fields["data"] = dump({**job.data, **fields["data"]})
    fields["updated_at"] = draft.now
    names = ", ".join(f"{name}=?" for name in fields)
    draft.connection.execute(
        f"UPDATE jobs SET {names} WHERE id=?",  # noqa: S608  (our names)
        (*fields.values(), job.id),
    )
    found = find(draft, job.id)
    assert found is not None
    return found


def enter(
    draft: Transaction,
    job_id: str,
    name: str,
    event: Event,
    *,
    attempt: int,
    signature: str | None = None,
    at: float | None = None,
) -> int:
    """Write an entry into the log; return its number. `signature` is the one that it was handed in with."""
    done = draft.connection.execute(
        "INSERT INTO job_events(job_id, attempt, seq, name, signature, at, payload)"
        " VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            job_id,
            attempt,
            event["seq"],
            name,
            signature,
            draft.now if at is None else at,
            json.dumps(event, sort_keys=True, separators=(",", ":")),
        ),
    )
    return int(done.lastrowid or 0)


def was_dropped(draft: Transaction, job_id: str, mark: str) -> bool:
    """Tell whether a refused event with this mark is in the log."""
    query = "SELECT 1 FROM job_events WHERE job_id=? AND name='dropped' AND signature=? LIMIT 1"
    return draft.connection.execute(query, (job_id, mark)).fetchone() is not None


def entries(draft: Transaction, job_id: str, after: int = 0, limit: int = -1) -> list[Entry]:
    """Return the log of one job from behind an entry on."""
    found = draft.connection.execute(
        "SELECT number, job_id, name, at, payload FROM job_events WHERE job_id=? AND number>?"
        " ORDER BY number LIMIT ?",
        (job_id, after, limit),
    )
    return [Entry(*values) for values in found]


def since(draft: Transaction, number: int, job_ids: Collection[str]) -> list[Entry]:
    """Return what was entered behind a number, of some jobs."""
    found = draft.connection.execute(
        "SELECT number, job_id, name, at, payload FROM job_events WHERE number>? ORDER BY number", (number,)
    )
    return [Entry(*values) for values in found if values[1] in job_ids]


def newest(draft: Transaction) -> int:
    """Return the number of the last entry of all logs."""
    found = draft.connection.execute("SELECT max(number) FROM job_events").fetchone()
    return int(found[0] or 0)


def last_entry(draft: Transaction, job_id: str) -> Entry | None:
    """Return the newest entry of a job's log."""
    found = draft.connection.execute(
        "SELECT number, job_id, name, at, payload FROM job_events WHERE job_id=?"
        " ORDER BY number DESC LIMIT 1",
        (job_id,),
    ).fetchone()
    return Entry(*found) if found else None


def seen(draft: Transaction, job_id: str, attempt: int, seq: int, signature: str | None) -> Event | None:
    """Return the event of this number that was taken in before, with the signature that it came with.

    A terminal event may have the number of another one; the one with the same signature is meant then.
    """
    found = draft.connection.execute(
        "SELECT signature, payload FROM job_events WHERE job_id=? AND attempt=? AND seq=?"
        " ORDER BY signature IS ? DESC LIMIT 1",
        (job_id, attempt, seq, signature),
    ).fetchone()
    if found is None:
        return None
    event: Event = json.loads(found[1])
    return {**event, "data": {**event["data"], "hmac_sig": found[0]}}


_SELECT = f"SELECT {', '.join(_FIELDS)} FROM jobs"  # noqa: S608  (our names)
