"""A transaction of the registry: what a verb can read and write between taking the lock and the commit."""

from __future__ import annotations

import os
from contextlib import contextmanager

from mam.adapters.store.intents import Intents
from mam.adapters.system import json_text as json
from mam.adapters.system import process
from mam.core.errors import AmbiguousTarget, Conflict, MamError, NameTaken, SessionNotFound
from mam.core.session_row import Status, with_all_fields, with_new_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from typing import Any

    from mam.core.session_row import Row


# While this is recorded, the next update of the YAML file keeps no former one.
DROPS_FORMER_FILE = "drops_former_file"
# The process of the last change that the YAML file does not show yet.
CHANGED_BY = "changed_by"
# What the YAML file may show besides what is recorded: mam may have replaced it and failed to record that.
POSSIBLY_SHOWN = "possibly_shown"


def new_session_id() -> str:
    """Return the id of a session that gets its row now."""
    return f"s_{os.urandom(4).hex()}"


class Transaction:
    """The registry inside one transaction. The methods return copies of rows; `put` writes a row back."""

    def __init__(
        self, connection: sqlite3.Connection, now: float, file_differs: Callable[[], bool] | None = None
    ) -> None:
        """Work on a connection: with the write lock, or only reading (`Registry.peek`).

        `file_differs` tells whether the YAML file is another one than was recorded last.
        """
        self.connection = connection
        self.now = now
        self._file_differs = file_differs
        self.intents = Intents(connection)
        self._is_change_noted = False
        self._follow_ups: list[Callable[[], None]] = []

    def note_change(self) -> None:
        """Record who changes what the YAML file shows: that process writes the file, unless it dies."""
        if not self._is_change_noted:
            self.set_meta(CHANGED_BY, process.me().as_json())
            self._is_change_noted = True

    def after_commit(self, work: Callable[[], None]) -> None:
        """Register work for after the commit, such as writing a file that shows the change."""
        self._follow_ups.append(work)

    @contextmanager
    def part(self) -> Iterator[None]:
        """Do a part of the transaction. An error undoes this part and is raised; the rest can go on."""
        count, is_change_noted = len(self._follow_ups), self._is_change_noted
        self.connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            del self._follow_ups[count:]
            self._is_change_noted = is_change_noted
            # After some errors, such as a full disk, SQLite has undone the whole transaction already.
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO part")
                self.connection.execute("RELEASE part")
            raise
        self.connection.execute("RELEASE part")

    def follow_up(self) -> None:
        """Do all work that was registered for after the commit, and only then raise the first failure.

        The change itself is committed, and the error says so.
        """
        failure: Exception | None = None
        for work in self._follow_ups:
            try:
                work()
            except Exception as error:
                failure = failure or error
        if isinstance(failure, MamError):
            failure.recorded, failure.retryable = True, False
        if failure is not None:
            raise failure

    def rows(self) -> list[Row]:
        """Return every session in the order of the file."""
        rows = self.connection.execute("SELECT data FROM sessions ORDER BY position").fetchall()
        return [with_new_fields(json.loads(data)) for (data,) in rows]

    def get(self, session_id: str) -> Row | None:
        """Return one session by id."""
        row = self.connection.execute("SELECT data FROM sessions WHERE id=?", (session_id,)).fetchone()
        return with_new_fields(json.loads(row[0])) if row else None

    def named(self, name: str) -> Row | None:
        """Return one session by name."""
        row = self.connection.execute("SELECT data FROM sessions WHERE name=?", (name,)).fetchone()
        return with_new_fields(json.loads(row[0])) if row else None

    def find(self, target: str) -> Row:
        """Return the session that a person means by a name or an id."""
        return choose(target, self.get(target), self.named(target), self._names)

    def _names(self) -> list[str]:
        return [name for (name,) in self.connection.execute("SELECT name FROM sessions ORDER BY position")]

    def add(self, row: Row) -> Row:
        """Add a new session at the end of the file."""
        row = with_all_fields({**row, "version": 1})
        if self.named(row["name"]):
            raise NameTaken(f"a session named '{row['name']}' is registered already")
        data = _sound(row)
        self.connection.execute(
            "INSERT INTO sessions(id, name, status, position, version, data)"
            " VALUES(?, ?, ?, (SELECT coalesce(max(position), 0) + 1 FROM sessions), 1, ?)",
            (row["id"], row["name"], row["status"], data),
        )
        self._note_server(row)
        self.note_change()
        return row

    def put(self, row: Row) -> Row:
        """Write a session back; raise Conflict if another process changed it since it was read."""
        row = with_all_fields({**row, "version": row["version"] + 1})
        data = _sound(row)
        self._keep_possibly_shown(row["id"])
        cursor = self.connection.execute(
            "UPDATE sessions SET name=?, status=?, version=?, data=?, block=NULL,"
            " written=coalesce(written, CASE WHEN block IS NULL THEN NULL ELSE data END)"
            " WHERE id=? AND version=?",
            (row["name"], row["status"], row["version"], data, row["id"], row["version"] - 1),
        )
        if cursor.rowcount != 1:
            raise Conflict(f"another process changed '{row['name']}'", hint="repeat the command")
        self._note_server(row)
        self.note_change()
        return row

    def _keep_possibly_shown(self, session_id: str) -> None:
        """Keep what the file may show of a row, before the row changes or goes.

        The file was replaced, and what it shows could not be recorded, as on a full disk. Without this, the
        next look would take it for an edit of a person.
        """
        query = "SELECT data FROM sessions WHERE id=? AND block IS NULL"
        row = self.connection.execute(query, (session_id,)).fetchone()
        if row is not None and self._file_differs is not None and self._file_differs():
            kept = self.meta(POSSIBLY_SHOWN) or {}
            kept.setdefault("rows", {}).setdefault(session_id, []).append(json.loads(row[0]))
            self.set_meta(POSSIBLY_SHOWN, kept)

    def _note_server(self, row: Row) -> None:
        """Record the server of a running session for listings, and remove unused servers."""
        servers = self.meta("servers") or []
        if row["status"] != Status.RUNNING or row["tmux_server"] in servers:
            return
        used = {session["tmux_server"] for session in self.rows() if session["status"] == Status.RUNNING}
        self.set_meta("servers", sorted(used | {row["tmux_server"]}))

    def remove(self, session_id: str) -> None:
        """Remove a session from the registry, with the messages to it; those that it sent stay."""
        may_be_shown = self._file_differs is not None and self._file_differs()
        self.connection.execute(
            "INSERT INTO forgotten SELECT coalesce(written, data) FROM sessions"
            " WHERE id=? AND (written IS NOT NULL OR block IS NOT NULL OR ?)",
            (session_id, may_be_shown),
        )
        self.connection.execute("DELETE FROM sessions WHERE id=?", (session_id,))
        self.connection.execute("DELETE FROM evidence WHERE session_id=?", (session_id,))
        self.connection.execute("DELETE FROM messages WHERE session_id=?", (session_id,))
        self.drop_former_file()

    def drop_former_file(self) -> None:
        """Have the next update of the YAML file keep no former one: that has what is removed now."""
        self.set_meta(DROPS_FORMER_FILE, True)
        self.note_change()

    def log(self, actor: str, verb: str, row: Row | None, reason: str | None = None, **detail: Any) -> None:
        """Record who did what to which session, and why."""
        from mam.core import record_limits

        text = dump(detail)
        if not record_limits.is_text("detail", text):
            text = dump({"omitted": len(text)})
        reason = None if reason is None else record_limits.sentence(reason)
        self.connection.execute(
            "INSERT INTO log(at, actor, verb, session_id, name, reason, detail) VALUES(?, ?, ?, ?, ?, ?, ?)",
            (self.now, actor, verb, row and row.get("id"), row and row.get("name"), reason, text),
        )

    def was_changed(self, session_id: str, since: float) -> bool:
        """Tell whether the log has a change of a session after a time."""
        query = "SELECT 1 FROM log WHERE session_id=? AND at>? LIMIT 1"
        return self.connection.execute(query, (session_id, since)).fetchone() is not None

    def meta(self, key: str) -> Any:
        """Return a value that belongs to the whole registry."""
        row = self.connection.execute("SELECT value FROM meta WHERE key=?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def set_meta(self, key: str, value: Any) -> None:
        """Store a value that belongs to the whole registry."""
        self.connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (key, dump(value)))

    def identities(self) -> dict[str, Any]:
        """Return the last known conversation of each kind."""
        return self.meta("identities") or {}

    def set_identity(self, kind: str, identity: dict[str, Any] | None) -> None:
        """Remember the last known conversation of a kind, or forget it."""
        if self._file_differs is not None and self._file_differs():
            kept = self.meta(POSSIBLY_SHOWN) or {}
            kept.setdefault("identities", []).append(self.identities())
            self.set_meta(POSSIBLY_SHOWN, kept)
        identities = {**self.identities(), kind: identity}
        self.set_meta("identities", {key: value for key, value in identities.items() if value})
        self.note_change()


def _sound(row: Row) -> str:
    """Return a row as it is recorded."""
    from mam.core import record_limits

    data = dump(row)
    record_limits.check(data=data)
    return data


def choose(target: str, by_id: Row | None, by_name: Row | None, names: Any) -> Row:
    """Return the row that has a name or id; raise an error if two rows or none do."""
    if by_id and by_name and by_id["id"] != by_name["id"]:
        raise AmbiguousTarget(f"'{target}' is the id of one session and the name of another")
    row = by_id or by_name
    if row is None:
        raise not_found(target, names())
    return row


def not_found(target: str, names: list[str]) -> SessionNotFound:
    """Return the error for a name that no session has, with similar names as a hint."""
    import difflib

    similar = difflib.get_close_matches(target[:200], names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(similar)}?" if similar else "mam ls shows the sessions of this root"
    return SessionNotFound(f"no session '{target[:100]}' is registered here", hint=hint)


def dump(value: Any) -> str:
    """Return a value as the JSON text that the database stores."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
