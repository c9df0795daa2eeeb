"""Reading an agent's own SQLite database, without writing, locking or creating anything."""

from __future__ import annotations

import os

from mam.adapters.agents.open_regular import is_regular_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

_WAIT_SECONDS = 1.0


class Unreadable(Exception):
    """The database cannot be read, so its content is unknown."""


def query(path: str, sql: str, *values: object) -> list[Any]:
    """Return the rows of a query; none if there is no database. Raises Unreadable."""
    import sqlite3

    if not os.path.exists(path):
        return []
    try:
        connection = _open(path)
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise Unreadable(str(error)) from error


def _open(path: str) -> Connection:
    import sqlite3
    from urllib.parse import quote

    if not is_regular_file(path):
        raise Unreadable("it is not a file")
    # Without a WAL file no process has the database open. Then `immutable` keeps SQLite from creating files.
    mode = "mode=ro" if os.path.exists(f"{path}-wal") else "mode=ro&immutable=1"
    connection = sqlite3.connect(f"file:{quote(path)}?{mode}", uri=True, timeout=_WAIT_SECONDS)
    connection.row_factory = sqlite3.Row
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection
