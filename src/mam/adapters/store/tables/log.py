"""The log of what was done to sessions, as it is read; `Transaction.log` writes it."""

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

    `target` is its id or any name it had, `session_id` the id of whoever has that name now.
    """
    given = {"target": target, "id": session_id, "since": since, "limit": limit}
    found = connection.execute(_NEWEST, given).fetchall()
    entries = [dict(zip(_FIELDS, one, strict=True)) for one in reversed(found)]
    return [{**one, "detail": json.loads(one["detail"])} for one in entries]
