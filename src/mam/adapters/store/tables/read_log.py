"""Reads the log of actions on sessions; `Transaction.log` writes it."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction

_FIELDS = ("seq", "at", "actor", "verb", "session_id", "name", "reason", "detail")
_NEWEST = """\
SELECT seq, at, actor, verb, session_id, name, reason, detail FROM log
WHERE (:target IS NULL OR session_id IN (:id, :target) OR name=:target) AND at >= :since
ORDER BY seq DESC LIMIT :limit"""


def newest(
    connection: sqlite3.Connection, target: str | None, session_id: str | None, *, since: float, limit: int
) -> list[dict[str, Any]]:
    """Return the newest entries since a time, oldest first: all, or those of a session.

    `target` is the id of the session or any name that it had. `session_id` is the id of the session that has
    this name now.
    """
    values = {"target": target, "id": session_id, "since": since, "limit": limit}
    rows = connection.execute(_NEWEST, values).fetchall()
    entries = [dict(zip(_FIELDS, row, strict=True)) for row in reversed(rows)]
    return [{**entry, "detail": json.loads(entry["detail"])} for entry in entries]


def remove_old(transaction: Transaction, before: float, most_entries: int, limit: int) -> bool:
    """Delete at most `limit` entries that are older, or too many; return False once none is left.

    An entry with a later time ends the search, so that one which was written while the clock was ahead
    keeps what follows it. Numbers are never used again.
    """
    connection = transaction.connection
    first_kept = connection.execute("SELECT min(seq) FROM log WHERE at >= ?", (before,)).fetchone()[0]
    newest = connection.execute("SELECT max(seq) FROM log").fetchone()[0] or 0
    end = max(newest + 1 if first_kept is None else first_kept, newest - most_entries + 1)
    cursor = connection.execute(
        "DELETE FROM log WHERE seq IN (SELECT seq FROM log WHERE seq < ? ORDER BY seq LIMIT ?)", (end, limit)
    )
    return bool(cursor.rowcount == limit)
