"""The user state: records that belong to the user and not to one root, such as roots and open conversations.

A lease names the process that has a conversation open. The lease ends with that process: if its holder is
dead, the conversation is free, even if the record still exists.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager

from mam.adapters.store import database, schema
from mam.core.errors import Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


_STARTED = "SELECT 1 FROM started WHERE root=? AND session_id=?"


class Lease:
    """The session and the process that hold a conversation."""

    __slots__ = ("holder", "root", "session_id")

    def __init__(self, root: str, session_id: str, holder: dict[str, Any]) -> None:
        self.root = root
        self.session_id = session_id
        self.holder = holder


def state_home(environ: Mapping[str, str]) -> str:
    """Return the folder of the user state."""
    home = environ.get("HOME") or os.path.expanduser("~")
    base = environ.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
    return os.path.join(base, "mam")


class UserState:
    """The user state; its database is opened when it is first needed."""

    def __init__(self, folder: str, clock: Callable[[], float]) -> None:
        """Store the folder; open nothing yet."""
        self.folder = folder
        self.path = os.path.join(folder, "host.db")
        self.clock = clock
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            with database.errors(self.folder):
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
            self._connection = database.connect(self.path, schema.USER_MIGRATIONS, create=True)
        return self._connection

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Work on the database; after an error of the disk, the next use opens it again."""
        try:
            with database.errors(self.path):
                yield self._open()
        except Unavailable:
            self.close()
            raise

    def roots(self) -> list[tuple[str, str]]:
        """Return every known root with its registry file."""
        if not os.path.exists(self.path):
            return []
        with database.errors(self.path):
            return self._open().execute("SELECT path, registry FROM roots ORDER BY path").fetchall()

    def remember_root(self, root: str, registry: str) -> None:
        """Record a root, so that `ls --all` finds it."""
        with self._using() as connection:
            row = connection.execute("SELECT registry FROM roots WHERE path=?", (root,)).fetchone()
            if row != (registry,):
                connection.execute(
                    "INSERT OR REPLACE INTO roots VALUES(?, ?, ?)", (root, registry, self.clock())
                )

    def has_started(self, root: str, session_id: str) -> bool:
        """Tell whether this user's mam ever started a session."""
        if not os.path.exists(self.path):
            return False
        with database.errors(self.path):
            return bool(self._open().execute(_STARTED, (root, session_id)).fetchone())

    def note_start(self, root: str, session_id: str) -> None:
        """Record that a session is started here."""
        with self._using() as connection:
            if not connection.execute(_STARTED, (root, session_id)).fetchone():
                connection.execute("INSERT OR IGNORE INTO started VALUES(?, ?)", (root, session_id))

    def lease(self, kind: str, conversation: str) -> Lease | None:
        """Return the lease of a conversation, also of a dead holder."""
        with database.errors(self.path):
            row = (
                self._open()
                .execute(
                    "SELECT root, session_id, holder FROM leases WHERE kind=? AND conversation=?",
                    (kind, conversation),
                )
                .fetchone()
            )
            return Lease(row[0], row[1], json.loads(row[2])) if row else None

    def take(
        self, kind: str, conversation: str, lease: Lease, is_alive: Callable[[dict[str, Any]], bool]
    ) -> Lease | None:
        """Take a conversation; return None, or the other session that holds it with a live process."""
        with self._using() as connection, database.transaction(connection, self.path):
            other = self.lease(kind, conversation)
            if other and other.session_id != lease.session_id and is_alive(other.holder):
                return other
            connection.execute(
                "INSERT OR REPLACE INTO leases VALUES(?, ?, ?, ?, ?, ?)",
                (kind, conversation, lease.root, lease.session_id, json.dumps(lease.holder), self.clock()),
            )
        return None

    def release(self, session_id: str) -> None:
        """Release all conversations of a session."""
        with self._using() as connection:
            connection.execute("DELETE FROM leases WHERE session_id=?", (session_id,))
