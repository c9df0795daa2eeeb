"""What was last seen of each session, by source, and the spool that hooks write into.

A hook drops one file per event; taking them in moves them into the database, in the order of
their time, and removes them. It is no change of the registry.
"""

from __future__ import annotations

import json
import math
import os
import stat
import time
from contextlib import suppress

from mam.adapters.store import database
from mam.adapters.store.transaction import dump
from mam.core.names import is_session_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from mam.adapters.store.registry import Registry

_LONGEST_PID = 10
# A hook takes some milliseconds, and its agent ends it after some seconds.
_ABANDONED_SECONDS = 600.0
LARGEST_PAYLOAD = 4 * 1024 * 1024


class Payload:
    """One event as a hook wrote it; it is read when somebody wants to know what it says."""

    __slots__ = ("_data", "at", "path", "pid", "session_id")

    def __init__(self, path: str, session_id: str, pid: str, at: float) -> None:
        self.path = path
        self.session_id = session_id
        self.pid = pid
        self.at = at
        self._data: dict[str, Any] | None = None

    @property
    def data(self) -> dict[str, Any] | None:
        """What the hook wrote; nothing in a broken one, None where it cannot be read, or was taken since."""
        if self._data is None:
            try:
                with open(self.path, "rb", opener=_open_regular) as file:
                    self._data = _parse(file.read(LARGEST_PAYLOAD))
            except OSError:
                return None
        return self._data


def _open_regular(path: str, flags: int) -> int:
    # What was a file when it was listed may be a pipe by now.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def pending(spool: str, now: float = math.inf, session_id: str | None = None) -> list[Payload]:
    """Return the payloads that wait in the spool, oldest first; with `session_id` those of one session.

    None is from the future: a clock that was put back must not let an old word win.
    """
    try:
        start = f"{session_id}." if session_id else ""
        listed = os.listdir(spool)
    except OSError:
        return []
    names = [name for name in listed if name.startswith(start) and _is_payload(name)]
    found = []
    for name in names:
        path = os.path.join(spool, name)
        try:
            facts = os.stat(path, follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISREG(facts.st_mode):
            session_id, _, rest = name.partition(".")
            found.append(Payload(path, session_id, rest.partition(".")[0], min(facts.st_mtime, now)))
    return sorted(found, key=lambda one: (one.at, one.path))


def _is_pid(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_PID


def _is_payload(name: str) -> bool:
    """Tell whether a file is named as our hook names it; any other is not ours to take."""
    parts = name.split(".")
    return len(parts) >= 4 and parts[-1] == "json" and is_session_id(parts[0]) and _is_pid(parts[1])


def _is_half(name: str) -> bool:
    """Tell whether a file is one that a hook has not finished."""
    parts = name.split(".")
    return len(parts) >= 5 and not parts[0] and parts[-1] == "tmp" and is_session_id(parts[1])


def remove_halves(spool: str) -> None:
    """Remove what a hook left that was killed on its way: nobody else knows of it."""
    try:
        listed = os.listdir(spool)
    except OSError:
        return
    for name in listed:
        path = os.path.join(spool, name)
        with suppress(OSError):
            if (
                _is_half(name)
                and time.time() - os.stat(path, follow_symlinks=False).st_mtime > _ABANDONED_SECONDS
            ):
                os.unlink(path)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def record(
    connection: sqlite3.Connection, session_id: str, source: str, at: float, data: dict[str, Any]
) -> None:
    """Keep the newest evidence of one source."""
    connection.execute(
        "INSERT INTO evidence VALUES(?, ?, ?, ?) ON CONFLICT(session_id, source)"
        " DO UPDATE SET at=excluded.at, data=excluded.data WHERE excluded.at >= evidence.at",
        (session_id, source, at, dump(data)),
    )


def recorded(registry: Registry, source: str) -> dict[str, tuple[float, dict[str, Any]]]:
    """Return for each session the newest evidence of one source."""
    connection = registry.reader()
    if connection is None:
        return {}
    query = "SELECT session_id, at, data FROM evidence WHERE source=?"
    with database.errors(registry.place.db):
        found = connection.execute(query, (source,)).fetchall()
        # One document is read several times faster than as many small ones.
        try:
            documents = json.loads("[" + ",".join([data for _, _, data in found]) + "]")
        except TypeError as error:
            raise database.damaged(registry.place.db, "a record is not readable") from error
    return {session_id: (at, data) for (session_id, at, _), data in zip(found, documents, strict=True)}


def clear(connection: sqlite3.Connection, session_id: str, source: str | None = None) -> None:
    """Forget what was seen of an earlier run of a session, or what one source said."""
    connection.execute(
        "DELETE FROM evidence WHERE session_id=?1 AND source=coalesce(?2, source)", (session_id, source)
    )
