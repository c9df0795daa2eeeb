"""The outbox: one row for each message to a broker, written in the transaction of its event.

A publisher reads `waiting` in the order of `seq` and publishes each row with QoS 1 to
`<prefix>/<job_id>/<topic>` (the job's `topic_prefix`) with its `retain` flag. It calls `set_published` only
after the broker has acknowledged the row. If it dies in between, the row is published twice, which does no
harm, because receivers count an event once. Rows of one job are published in order. A new status replaces
the older one of its job, because the broker retains only the last. A published row stays for a while, because
it may have to be published again; a big one is deleted, and made again from the ledger. A verb waits at most
2 s for a broker, after its commit and only if no resident runs. A job without a broker writes no rows.
"""

from __future__ import annotations

from mam.core.job_event import DROPPED, EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction

_KEPT_SECONDS = 7 * 86400.0
# A published event that is larger is kept in the ledger only.
LARGEST_KEPT = 8 * 1024


class OutboxRow:
    """One message for the broker."""

    __slots__ = ("created_at", "job_id", "payload", "retain", "seq", "topic")

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Store the values of a row of the table; `topic` is the suffix, `events` or `status`."""
        self.seq: int = values[0]
        self.job_id: str = values[1]
        self.topic: str = values[2]
        self.payload: str = values[3]
        self.retain = bool(values[4])
        self.created_at: float = values[5]


def put(transaction: Transaction, job_id: str, topic: str, payload: str, *, retain: bool) -> int:
    """Add a message and return its number; a retained message replaces the one before it."""
    if retain:
        transaction.connection.execute(
            "DELETE FROM outbox WHERE job_id=? AND topic=? AND retain", (job_id, topic)
        )
    cursor = transaction.connection.execute(
        "INSERT INTO outbox(job_id, topic, payload, retain, created_at) VALUES(?, ?, ?, ?, ?)",
        (job_id, topic, payload, int(retain), transaction.now),
    )
    return int(cursor.lastrowid or 0)


def waiting(transaction: Transaction, *, job_id: str | None = None, limit: int = 500) -> list[OutboxRow]:
    """Return the rows to publish next, oldest first; of one job, or of all."""
    which = "" if job_id is None else " AND job_id=?"
    rows = transaction.connection.execute(
        "SELECT seq, job_id, topic, payload, retain, created_at FROM outbox"  # noqa: S608  (our words)
        f" WHERE published_at IS NULL{which} ORDER BY seq LIMIT ?",
        (*(() if job_id is None else (job_id,)), limit),
    )
    return [OutboxRow(values) for values in rows]


def set_published(transaction: Transaction, numbers: Iterable[int]) -> None:
    """Record that the broker has acknowledged these rows; delete big ones, and those of long ago."""
    numbers = list(numbers)
    transaction.connection.executemany(
        "UPDATE outbox SET published_at=? WHERE seq=? AND published_at IS NULL",
        [(transaction.now, number) for number in numbers],
    )
    transaction.connection.executemany(
        "DELETE FROM outbox WHERE seq=? AND NOT retain AND length(payload) > ?",
        [(number, LARGEST_KEPT) for number in numbers],
    )
    transaction.connection.execute(
        "DELETE FROM outbox WHERE published_at < ?", (transaction.now - _KEPT_SECONDS,)
    )


def empty(transaction: Transaction) -> int:
    """Delete every row, so that nothing of it is published; return how many were still to be published."""
    (count,) = transaction.connection.execute(
        "SELECT count(*) FROM outbox WHERE published_at IS NULL"
    ).fetchone()
    transaction.connection.execute("DELETE FROM outbox")
    return int(count)


def is_waiting(transaction: Transaction, numbers: Iterable[int]) -> bool:
    """Tell whether the broker has not acknowledged all of these rows yet."""
    query = "SELECT 1 FROM outbox WHERE seq=? AND published_at IS NULL"
    return any(transaction.connection.execute(query, (number,)).fetchone() for number in numbers)


def waiting_jobs(transaction: Transaction) -> list[str]:
    """Return the jobs with rows to publish."""
    rows = transaction.connection.execute("SELECT DISTINCT job_id FROM outbox WHERE published_at IS NULL")
    return [job_id for (job_id,) in rows]


def is_waiting_since(transaction: Transaction, since: float) -> bool:
    """Tell whether any row that is newer than this is still to be published."""
    query = "SELECT 1 FROM outbox WHERE published_at IS NULL AND created_at >= ? LIMIT 1"
    return transaction.connection.execute(query, (since,)).fetchone() is not None


def recent(transaction: Transaction, since: float) -> list[str]:
    """Return the jobs with rows that were added since then."""
    rows = transaction.connection.execute(
        "SELECT DISTINCT job_id FROM outbox WHERE created_at >= ?", (since,)
    )
    return [job_id for (job_id,) in rows]


def publish_again(transaction: Transaction, job_id: str) -> None:
    """Publish all rows of a job again, and the big events of the same time, which only the ledger has."""
    transaction.connection.execute(
        "INSERT INTO outbox(job_id, topic, payload, retain, created_at)"
        " SELECT job_id, ?1, payload, 0, at FROM job_events"
        " WHERE job_id=?2 AND signature IS NOT NULL AND name != ?3 AND at >= ?4 AND length(payload) > ?5"
        " AND payload NOT IN (SELECT payload FROM outbox WHERE job_id=?2 AND topic=?1) ORDER BY number",
        (EVENTS, job_id, DROPPED, transaction.now - _KEPT_SECONDS, LARGEST_KEPT),
    )
    transaction.connection.execute("UPDATE outbox SET published_at=NULL WHERE job_id=?", (job_id,))
