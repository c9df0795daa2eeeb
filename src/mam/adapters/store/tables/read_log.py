"""Reads the log of actions on sessions; `Transaction.log` writes it."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

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
