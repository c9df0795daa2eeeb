"""The table of drifts that passes found: each drift once, in order, and which ones were printed."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction

_CURSOR = "drift_cursor"
# Drifts are for the present; the log keeps the history. One that lasts is kept, or it would be new again.
_KEPT = 1000


class OpenDrift:
    """A recorded drift that lasts: its number, its key, and the session and server that it is about."""

    __slots__ = ("key", "seq", "server", "session")

    def __init__(self, seq: int, key: str, data: dict[str, Any]) -> None:
        self.seq = seq
        self.key = key
        self.session: str | None = data.get("session")
        self.server: str | None = data.get("server")


def is_known(transaction: Transaction, key: str) -> bool:
    """Tell whether this drift is recorded and still lasts."""
    row = transaction.connection.execute("SELECT 1 FROM drifts WHERE key=? AND is_open", (key,)).fetchone()
    return row is not None


def open_drifts(transaction: Transaction) -> list[OpenDrift]:
    """Return the drifts that were recorded and may have ended since."""
    rows = transaction.connection.execute("SELECT seq, key, data FROM drifts WHERE is_open ORDER BY seq")
    return [OpenDrift(seq, key, json.loads(data)) for seq, key, data in rows]


def record(transaction: Transaction, drift: dict[str, Any], *, is_written: bool) -> None:
    """Record a drift; one that was written into the registry has ended with that."""
    transaction.connection.execute(
        "INSERT INTO drifts(key, at, is_open, data) VALUES(?, ?, ?, ?)",
        (drift["id"], transaction.now, not is_written, json.dumps({**drift, "written": is_written})),
    )
    transaction.connection.execute(
        "DELETE FROM drifts WHERE NOT is_open AND seq <= (SELECT max(seq) FROM drifts) - ?", (_KEPT,)
    )


def close(transaction: Transaction, ended: Iterable[OpenDrift]) -> None:
    """End these drifts; if one comes back, it is a new drift."""
    transaction.connection.executemany(
        "UPDATE drifts SET is_open=0 WHERE seq=?", [(drift.seq,) for drift in ended]
    )


def unprinted(transaction: Transaction) -> list[dict[str, Any]]:
    """Return the drifts since the last printed pass, oldest first."""
    return [drift for _, _, drift in since(transaction, last_printed(transaction))]


def last_printed(transaction: Transaction) -> int:
    """Return the number of the last drift that was printed."""
    return int(transaction.meta(_CURSOR) or 0)


def last_before(transaction: Transaction, at: float) -> int:
    """Return the number of the last drift before a time."""
    row = transaction.connection.execute("SELECT max(seq) FROM drifts WHERE at < ?", (at,)).fetchone()
    return int(row[0] or 0)


def newest(transaction: Transaction) -> int:
    """Return the number of the last drift."""
    return int(transaction.connection.execute("SELECT coalesce(max(seq), 0) FROM drifts").fetchone()[0])


def since(transaction: Transaction, number: int) -> list[tuple[int, float, dict[str, Any]]]:
    """Return the drifts after a number, oldest first, each with its number and time."""
    rows = transaction.connection.execute(
        "SELECT seq, at, data FROM drifts WHERE seq > ? ORDER BY seq", (number,)
    )
    return [(seq, at, json.loads(data)) for seq, at, data in rows]


def set_printed(transaction: Transaction) -> None:
    """Record that all drifts up to now were printed."""
    last = newest(transaction)
    if last != last_printed(transaction):
        transaction.set_meta(_CURSOR, last)


def remove_ended(transaction: Transaction, before: float) -> None:
    """Delete the drifts that ended and are older than this."""
    transaction.connection.execute("DELETE FROM drifts WHERE NOT is_open AND at < ?", (before,))
