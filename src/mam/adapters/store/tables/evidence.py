"""The table of evidence: the newest of each session, by source. It does not belong to the registry."""

from __future__ import annotations

from mam.adapters.store import database
from mam.adapters.store.rows_and_log import dump
from mam.adapters.system import json_text as json
from mam.core.activity import AHEAD_SECONDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from mam.adapters.store.registry import Registry


# The source of the record of an open dialog; see app/observation/open_dialogs.py.
DIALOG = "dialog"


def record(
    connection: sqlite3.Connection, session_id: str, source: str, at: float, data: dict[str, Any], now: float
) -> None:
    """Store the newest evidence of one source. Recorded evidence from the future is never the newest."""
    connection.execute(
        "INSERT INTO evidence VALUES(?1, ?2, ?3, ?4) ON CONFLICT(session_id, source)"
        " DO UPDATE SET at=excluded.at, data=excluded.data"
        " WHERE excluded.at >= evidence.at OR evidence.at > ?5",
        (session_id, source, at, dump(data), now + AHEAD_SECONDS),
    )


def recorded(registry: Registry, source: str) -> dict[str, tuple[float, dict[str, Any]]]:
    """Return for each session the newest evidence of one source."""
    connection = registry.reader()
    if connection is None:
        return {}
    query = "SELECT session_id, at, data FROM evidence WHERE source=?"
    with database.errors(registry.paths.db):
        rows = connection.execute(query, (source,)).fetchall()
        # json parses one large document several times faster than many small ones.
        try:
            documents = json.loads("[" + ",".join([data for _, _, data in rows]) + "]")
        except TypeError as error:
            raise database.damaged(registry.paths.db, "a record is not readable") from error
    return {session_id: (at, data) for (session_id, at, _), data in zip(rows, documents, strict=True)}


def recorded_in(connection: sqlite3.Connection, session_id: str, source: str) -> dict[str, Any] | None:
    """Return the newest evidence of one source for one session."""
    query = "SELECT data FROM evidence WHERE session_id=? AND source=?"
    row = connection.execute(query, (session_id, source)).fetchone()
    data = json.loads(row[0]) if row else None
    return data if isinstance(data, dict) else None


def clear_older(connection: sqlite3.Connection, session_id: str, source: str, at: float) -> None:
    """Delete the evidence of one source if it is from before a time."""
    connection.execute(
        "DELETE FROM evidence WHERE session_id=? AND source=? AND at<?", (session_id, source, at)
    )


def clear(connection: sqlite3.Connection, session_id: str, source: str | None = None) -> None:
    """Delete the evidence of an earlier launch of a session, or of one source."""
    connection.execute(
        "DELETE FROM evidence WHERE session_id=?1 AND source=coalesce(?2, source)", (session_id, source)
    )
