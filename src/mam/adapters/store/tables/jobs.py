"""The tables of jobs and of their events: the ledger, which brokers and files only show."""

from __future__ import annotations

import json
from zlib import crc32

from mam.adapters.store.rows_and_log import dump
from mam.core import job_event, job_file_format, record_limits
from mam.core.job_rules import ENDED, JobStatus
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction

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
    """One job. `data` holds its options and other facts; the prompt is in a table of its own.

    A job with a `flaw` has a record that mam does not write; the flaw says what is wrong with it. It can be
    listed and cancelled. If its facts are not readable at all, `data` is empty, and they stay as recorded.
    """

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
    flaw: str | None
    is_readable: bool
    # A number that is another one after a change of what decides how the job goes on.
    stamp: int

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Store the values of a row of the table."""
        facts = dict(zip(_FIELDS, values, strict=True))
        chosen = [str(facts[name]) for name in ("status", "attempt", "session_id", "data")]
        self.stamp = crc32("\n".join(chosen).encode("utf-8", "replace"))
        data = _parsed(facts["data"])
        self.is_readable = data is not None
        facts["data"] = {} if data is None else data
        columns, flaw = job_file_format.sound_columns(facts)
        self.flaw = "its record is not readable" if data is None else flaw or job_file_format.flaw_of(data)
        self.__dict__.update(columns)


def _parsed(text: str) -> dict[str, Any] | None:
    """Return the document of a record; None if it is not one."""
    try:
        document = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


class Entry:
    """One entry of a job's log; `number` is its position in the ledger."""

    __slots__ = ("at", "document", "job_id", "name", "number", "size")

    def __init__(self, number: int, job_id: str, name: str, at: float, payload: str) -> None:
        """`name` is the event's name in the log; for `checking` the published name is another."""
        self.number = number
        self.job_id = job_id
        self.name = name
        self.at = at
        self.size = len(str(payload))
        document = _parsed(payload)
        if document is None:
            at = at if isinstance(at, float) else 0.0
            document = job_event.make(
                job_id, name, seq=0, attempt=0, timestamp=stamp(at), detail="this entry is not readable"
            )
        self.document: Event = document


def add(transaction: Transaction, job_id: str, prompt: str, data: dict[str, Any], **fields: Any) -> Job:
    """Record a new job."""
    facts = {
        "status": JobStatus.PENDING,
        "attempt": 1,
        "last_seq": 0,
        "ended_seq": None,
        "session_id": None,
        "created_at": transaction.now,
        "updated_at": transaction.now,
        "last_event_at": transaction.now,
        **fields,
    }
    recorded_data = dump(data)
    record_limits.check(prompt=prompt, data=recorded_data, **facts)
    names = ("id", *facts, "data")
    transaction.connection.execute(
        f"INSERT INTO jobs({', '.join(names)}) VALUES({', '.join('?' * len(names))})",
        (job_id, *facts.values(), recorded_data),
    )
    transaction.connection.execute("INSERT INTO job_prompts VALUES(?, ?)", (job_id, prompt))
    job = find(transaction, job_id)
    assert job is not None
    return job


def find(transaction: Transaction, job_id: str) -> Job | None:
    """Return one job."""
    row = transaction.connection.execute(f"{_SELECT} WHERE id=?", (job_id,)).fetchone()
    return Job(row) if row else None


def prompt_of(transaction: Transaction, job_id: str) -> str:
    """Return the prompt of a job."""
    row = transaction.connection.execute(
        "SELECT prompt FROM job_prompts WHERE job_id=?", (job_id,)
    ).fetchone()
    return str(row[0]) if row else ""


def listed(transaction: Transaction, *, only_open: bool = False, session_id: str | None = None) -> list[Job]:
    """Return jobs, oldest first: all, only open ones, or those of one session."""
    conditions = [_OPEN] if only_open else []
    conditions += ["session_id=?"] if session_id is not None else []
    which = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    values = () if session_id is None else (session_id,)
    rows = transaction.connection.execute(f"{_SELECT}{which} ORDER BY created_at, id", values)
    return [Job(values) for values in rows]


def ids(transaction: Transaction) -> set[str]:
    """Return the ids of all jobs."""
    return {job_id for (job_id,) in transaction.connection.execute("SELECT id FROM jobs")}


def open_ids(transaction: Transaction) -> set[str]:
    """Return the ids of the jobs that are open."""
    return {job_id for (job_id,) in transaction.connection.execute(f"SELECT id FROM jobs WHERE {_OPEN}")}  # noqa: S608


def unended_ids(transaction: Transaction) -> set[str]:
    """Return the ids of the jobs that have not ended, including parked ones."""
    query = f"SELECT id FROM jobs WHERE {_OPEN} OR status='parked'"  # noqa: S608
    return {job_id for (job_id,) in transaction.connection.execute(query)}


def parked(transaction: Transaction) -> list[Job]:
    """Return the parked jobs, oldest first."""
    rows = transaction.connection.execute(f"{_SELECT} WHERE status='parked' ORDER BY created_at, id")
    return [Job(values) for values in rows]


def statuses(transaction: Transaction, job_ids: Collection[str]) -> dict[str, tuple[str, float | None]]:
    """Return the status of each of these jobs that exists, and when mam reminded its agent."""
    marks = ", ".join("?" * len(job_ids))
    nudged_at = "CASE WHEN json_valid(data) THEN json_extract(data, '$.nudged_at') END"
    query = f"SELECT id, status, {nudged_at} FROM jobs WHERE id IN ({marks})"  # noqa: S608
    rows = transaction.connection.execute(query, tuple(job_ids)).fetchall()
    return {
        job_id: (status, nudged if isinstance(nudged, (int, float)) else None)
        for job_id, status, nudged in rows
    }


def update(transaction: Transaction, job: Job, **fields: Any) -> Job:
    """Change fields of a job; `data` holds only the keys that change."""
    if not job.is_readable:
        # Nothing is written from a record that could not be read.
        fields.pop("data", None)
    if "data" in fields:
        fields["data"] = dump({**job.data, **fields["data"]})
        record_limits.check(data=fields["data"])
    fields["updated_at"] = transaction.now
    names = ", ".join(f"{name}=?" for name in fields)
    transaction.connection.execute(
        f"UPDATE jobs SET {names} WHERE id=?",  # noqa: S608  (names of columns)
        (*fields.values(), job.id),
    )
    updated = find(transaction, job.id)
    assert updated is not None
    return updated


def add_entry(
    transaction: Transaction,
    job_id: str,
    name: str,
    event: Event,
    *,
    attempt: int,
    signature: str | None = None,
    at: float | None = None,
) -> int:
    """Add an entry to the log and return its number. `signature` is the one that came with the event."""
    cursor = transaction.connection.execute(
        "INSERT INTO job_events(job_id, attempt, seq, name, signature, at, payload)"
        " VALUES(?, ?, ?, ?, ?, ?, ?)",
        (
            job_id,
            attempt,
            event["seq"],
            name,
            signature,
            transaction.now if at is None else at,
            json.dumps(event, sort_keys=True, separators=(",", ":")),
        ),
    )
    return int(cursor.lastrowid or 0)


def was_dropped(transaction: Transaction, job_id: str, mark: str) -> bool:
    """Tell whether a refused event with this mark is in the log."""
    query = "SELECT 1 FROM job_events WHERE job_id=? AND name='dropped' AND signature=? LIMIT 1"
    return transaction.connection.execute(query, (job_id, mark)).fetchone() is not None


def entries(transaction: Transaction, job_id: str, after: int = 0, limit: int = -1) -> list[Entry]:
    """Return the entries of one job after an entry."""
    rows = transaction.connection.execute(
        "SELECT number, job_id, name, at, payload FROM job_events WHERE job_id=? AND number>?"
        " ORDER BY number LIMIT ?",
        (job_id, after, limit),
    )
    return [Entry(*values) for values in rows]


def since(transaction: Transaction, number: int, job_ids: Collection[str] | None = None) -> list[Entry]:
    """Return the entries of some jobs after a number; without `job_ids` of all jobs."""
    rows = transaction.connection.execute(
        "SELECT number, job_id, name, at, payload FROM job_events WHERE number>? ORDER BY number", (number,)
    )
    return [Entry(*values) for values in rows if job_ids is None or values[1] in job_ids]


def bytes_of_entries(transaction: Transaction, job_id: str) -> int:
    """Return about how much the entries of a job take in the database."""
    query = "SELECT coalesce(sum(length(payload)), 0) FROM job_events WHERE job_id=?"
    return int(transaction.connection.execute(query, (job_id,)).fetchone()[0])


def newest(transaction: Transaction) -> int:
    """Return the number of the last entry of all logs."""
    row = transaction.connection.execute("SELECT max(number) FROM job_events").fetchone()
    return int(row[0] or 0)


def continue_after(transaction: Transaction, number: int) -> None:
    """Give the next entry of all logs a greater number than this one."""
    last = "SELECT 1 FROM sqlite_sequence WHERE name='job_events'"
    if transaction.connection.execute(last).fetchone() is None:
        transaction.connection.execute("INSERT INTO sqlite_sequence VALUES('job_events', 0)")
    transaction.connection.execute(
        "UPDATE sqlite_sequence SET seq=max(seq, ?) WHERE name='job_events'", (number,)
    )


def last_entry(transaction: Transaction, job_id: str) -> Entry | None:
    """Return the newest entry of a job's log."""
    row = transaction.connection.execute(
        "SELECT number, job_id, name, at, payload FROM job_events WHERE job_id=?"
        " ORDER BY number DESC LIMIT 1",
        (job_id,),
    ).fetchone()
    return Entry(*row) if row else None


def started_entry(transaction: Transaction, job: Job) -> Entry | None:
    """Return the entry that says that the current attempt of a job has started."""
    row = transaction.connection.execute(
        "SELECT number, job_id, name, at, payload FROM job_events"
        " WHERE job_id=? AND attempt=? AND name='started' ORDER BY number LIMIT 1",
        (job.id, job.attempt),
    ).fetchone()
    return Entry(*row) if row else None


def recorded_event(
    transaction: Transaction, job_id: str, attempt: int, seq: int, signature: str | None
) -> Event | None:
    """Return the recorded event with this number, and the signature that came with it.

    A terminal event may have the number of another event. Then the event with the same signature counts.
    """
    row = transaction.connection.execute(
        "SELECT signature, payload FROM job_events WHERE job_id=? AND attempt=? AND seq=?"
        " ORDER BY signature IS ? DESC LIMIT 1",
        (job_id, attempt, seq, signature),
    ).fetchone()
    if row is None:
        return None
    event = _parsed(row[1]) or {}
    data = event.get("data")
    return {**event, "data": {**(data if isinstance(data, dict) else {}), "hmac_sig": row[0]}}


def is_recorded(transaction: Transaction, job_id: str, event: Event, payload: str) -> bool:
    """Tell whether an event is in the log with exactly this text, as mam publishes it."""
    query = "SELECT 1 FROM job_events WHERE job_id=? AND attempt=? AND seq=? AND payload=? LIMIT 1"
    values = (job_id, job_event.attempt_of(event), event["seq"], payload)
    return transaction.connection.execute(query, values).fetchone() is not None


def remove_ended(transaction: Transaction, job_id: str, *, most: int) -> bool:
    """Delete at most so many entries of a job that has ended; return True once nothing is left of it."""
    connection = transaction.connection
    job = find(transaction, job_id)
    if job is not None and job.status not in ENDED:
        return True
    connection.execute("DELETE FROM outbox WHERE job_id=?", (job_id,))
    cursor = connection.execute(
        "DELETE FROM job_events WHERE number IN"
        " (SELECT number FROM job_events WHERE job_id=? ORDER BY number LIMIT ?)",
        (job_id, most),
    )
    if cursor.rowcount == most:
        return False
    connection.execute("DELETE FROM job_prompts WHERE job_id=?", (job_id,))
    connection.execute("DELETE FROM jobs WHERE id=?", (job_id,))
    return True


def flawed(transaction: Transaction) -> list[tuple[str, str]]:
    """Return the id and the flaw of each job that has one and has not ended."""
    return [(job.id, job.flaw) for job in listed(transaction) if job.flaw and job.status not in ENDED]


def ended_before(transaction: Transaction, at: float) -> list[Job]:
    """Return the jobs that ended before a time, oldest first."""
    rows = transaction.connection.execute(
        f"{_SELECT} WHERE status IN ('completed', 'error', 'cancelled') AND updated_at < ?"
        " ORDER BY updated_at, id",
        (at,),
    )
    return [Job(values) for values in rows]


_SELECT = f"SELECT {', '.join(_FIELDS)} FROM jobs"  # noqa: S608  (names of columns)
