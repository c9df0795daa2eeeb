"""An agent's own database: read, and never written, locked or made to appear by us."""

from __future__ import annotations

import os

from mam.adapters.agents.open_regular import is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection
    from typing import Any

_WAIT_SECONDS = 1.0


class Unreadable(Exception):
    """Nobody can say what the database holds."""


def ask(path: str, question: str, *values: object) -> list[Any]:
    """Return the rows that answer a question; none where there is no database."""
    import sqlite3

    if not os.path.exists(path):
        return []
    try:
        connection = _opened(path)
        try:
            return connection.execute(question, values).fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise Unreadable(str(error)) from error


def _opened(path: str) -> Connection:
    import sqlite3
    from urllib.parse import quote

    if not is_plain(path):
        raise Unreadable("it is not a file")
    # Without a log nobody has it open, and nothing beside it must appear because we looked.
    mode = "mode=ro" if os.path.exists(f"{path}-wal") else "mode=ro&immutable=1"
    found = sqlite3.connect(f"file:{quote(path)}?{mode}", uri=True, timeout=_WAIT_SECONDS)
    found.row_factory = sqlite3.Row
    found.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return found
