"""What is still to be published: one row for each message, written in the transaction of its event.

Whoever publishes reads `waiting` in the order of `seq`, publishes each row with QoS 1 to
`<prefix>/<job_id>/<topic>` (the job's `topic_prefix`) with its `retain` flag, and calls `settle` only
after the broker has acknowledged it. A row that is published twice because the publisher died between
the two does no harm: receivers count an event once. Rows of one job are published in order; a new status
takes the place of the older one of its job, as only the last is retained. Nothing waits for a broker, and
a job without one writes no rows (`ledger.publish`).
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.transaction import Transaction

_KEPT_SECONDS = 7 * 86400.0


class OutboxRow:
    """One message for the broker."""

    __slots__ = ("created_at", "job_id", "payload", "retain", "seq", "topic")

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Take a row of the table; `topic` is the suffix, `events` or `status`."""
        self.seq: int = values[0]
        self.job_id: str = values[1]
        self.topic: str = values[2]
        self.payload: str = values[3]
        self.retain = bool(values[4])
        self.created_at: float = values[5]


def put(draft: Transaction, job_id: str, topic: str, payload: str, *, retain: bool) -> int:
    """Have a message published; return its number. One that is retained replaces its predecessor."""
    if retain:
        draft.connection.execute("DELETE FROM outbox WHERE job_id=? AND topic=? AND retain", (job_id, topic))
    done = draft.connection.execute(
        "INSERT INTO outbox(job_id, topic, payload, retain, created_at) VALUES(?, ?, ?, ?, ?)",
        (job_id, topic, payload, int(retain), draft.now),
    )
    return int(done.lastrowid or 0)


def waiting(draft: Transaction, *, job_id: str | None = None, limit: int = 500) -> list[OutboxRow]:
    """Return what is to be published next, oldest first; of one job, or of all."""
    which = "" if job_id is None else " AND job_id=?"
    found = draft.connection.execute(
        "SELECT seq, job_id, topic, payload, retain, created_at FROM outbox"  # noqa: S608  (our words)
        f" WHERE published_at IS NULL{which} ORDER BY seq LIMIT ?",
        (*(() if job_id is None else (job_id,)), limit),
    )
    return [OutboxRow(values) for values in found]


def settle(draft: Transaction, numbers: Iterable[int]) -> None:
    """Record that the broker has acknowledged these; what was published long ago goes."""
    draft.connection.executemany(
        "UPDATE outbox SET published_at=? WHERE seq=? AND published_at IS NULL",
        [(draft.now, number) for number in numbers],
    )
    draft.connection.execute("DELETE FROM outbox WHERE published_at < ?", (draft.now - _KEPT_SECONDS,))


def is_waiting(draft: Transaction, numbers: Iterable[int]) -> bool:
    """Tell whether any of these is not acknowledged yet."""
    query = "SELECT 1 FROM outbox WHERE seq=? AND published_at IS NULL"
    return any(draft.connection.execute(query, (number,)).fetchone() for number in numbers)


def waiting_jobs(draft: Transaction) -> list[str]:
    """Return the jobs of which something is to be published."""
    found = draft.connection.execute("SELECT DISTINCT job_id FROM outbox WHERE published_at IS NULL")
    return [job_id for (job_id,) in found]


def is_waiting_since(draft: Transaction, since: float) -> bool:
    """Tell whether anything newer than this is to be published."""
    query = "SELECT 1 FROM outbox WHERE published_at IS NULL AND created_at >= ? LIMIT 1"
    return draft.connection.execute(query, (since,)).fetchone() is not None


def recent(draft: Transaction, since: float) -> list[str]:
    """Return the jobs of which there was something to publish since then."""
    found = draft.connection.execute("SELECT DISTINCT job_id FROM outbox WHERE created_at >= ?", (since,))
    return [job_id for (job_id,) in found]


def again(draft: Transaction, job_id: str) -> None:
    """Have all that is kept of a job published once more."""
    draft.connection.execute("UPDATE outbox SET published_at=NULL WHERE job_id=?", (job_id,))


def has(draft: Transaction, job_id: str, payload: str) -> bool:
    """Tell whether these are words of ours."""
    query = "SELECT 1 FROM outbox WHERE job_id=? AND payload=? LIMIT 1"
    return draft.connection.execute(query, (job_id, payload)).fetchone() is not None
