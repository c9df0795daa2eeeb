"""The table of claims: changes in progress, each with the process that makes it.

A verb commits its intent before its first effect outside the database, and removes it with its last commit.
If the owner of an intent has died, the next verb finishes or undoes the change. While the owner
lives, no other verb may change that session.
"""

from __future__ import annotations

from mam.adapters.system import json_text as json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any


class Intent:
    """A verb that changes one session now. One with a `flaw` cannot be read, and nobody owns it."""

    __slots__ = ("at", "data", "flaw", "name", "owner", "session_id", "verb")

    def __init__(
        self,
        session_id: str,
        name: str,
        verb: str,
        *,
        owner: dict[str, Any],
        at: float,
        data: Mapping[str, Any],
    ) -> None:
        """Store what recovery needs: the owner, the verb, its start, and notes of the verb."""
        self.session_id = session_id
        self.name = name
        self.verb = verb
        self.owner = owner
        self.at = at
        self.data = data
        self.flaw: str | None = None


class Intents:
    """The intents of one root, inside a transaction or for reading."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Work on an open connection."""
        self.connection = connection

    def all(self) -> list[Intent]:
        """Return every intent, oldest first."""
        rows = self.connection.execute(
            "SELECT session_id, name, verb, owner, at, data FROM intents ORDER BY at"
        )
        return [_read(*values) for values in rows]

    def of(self, session_id: str, name: str | None = None) -> Intent | None:
        """Return the intent on a session, by its id or by the name that it gets."""
        return next(
            (
                intent
                for intent in self.all()
                if intent.session_id == session_id or (name and intent.name == name)
            ),
            None,
        )

    def put(self, intent: Intent) -> None:
        """Record an intent, or how far its change got."""
        self.connection.execute(
            "INSERT OR REPLACE INTO intents VALUES(?, ?, ?, ?, ?, ?)",
            (
                intent.session_id,
                intent.name,
                intent.verb,
                json.dumps(intent.owner),
                intent.at,
                json.dumps(intent.data, ensure_ascii=False),
            ),
        )

    def end(self, session_id: str, at: float | None = None) -> None:
        """Remove the intent of a change that is complete or was given up.

        With `at` remove only the intent of that time. A verb that ended its own intent with its last commit
        must not remove the intent of the next verb.
        """
        self.connection.execute(
            "DELETE FROM intents WHERE session_id=? AND (?2 IS NULL OR at=?2)", (session_id, at)
        )

    def take_out(self, session_id: str, at: float) -> dict[str, Any] | None:
        """Remove an intent; return its columns as they are recorded, so that it can be put back."""
        row = self.connection.execute(
            "DELETE FROM intents WHERE session_id=? AND at=?"
            " RETURNING session_id, name, verb, CAST(owner AS TEXT), at, CAST(data AS TEXT)",
            (session_id, at),
        ).fetchone()
        return None if row is None else dict(zip(_COLUMNS, row, strict=True))

    def put_back(self, columns: Mapping[str, Any]) -> None:
        """Record an intent again that was taken out, without an owner."""
        self.connection.execute(
            "INSERT INTO intents VALUES(?, ?, ?, ?, ?, ?)",
            tuple({**columns, "owner": "{}"}[name] for name in _COLUMNS),
        )


def parse_owner(text: object) -> Any:
    """Return the owner in a record; None if it cannot be read."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


_COLUMNS = ("session_id", "name", "verb", "owner", "at", "data")


def _read(session_id: str, name: str, verb: str, owner: str, at: float, data: str) -> Intent:
    """Return the intent of a row. One that cannot be read must not hide the others."""
    try:
        intent = Intent(session_id, name, verb, owner=json.loads(owner), at=at, data=json.loads(data))
        if isinstance(intent.owner, dict) and isinstance(intent.data, dict):
            return intent
        flaw = "its record is not what mam writes"
    except (ValueError, TypeError, RecursionError) as error:
        flaw = f"its record is not readable ({error})"
    intent = Intent(session_id, name, verb, owner={}, at=at, data={})
    intent.flaw = flaw
    return intent
