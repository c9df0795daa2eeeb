"""The table of claims: changes in progress, each with the process that makes it.

A verb commits its intent before its first effect outside the database, and removes it with its last commit.
If the owner of an intent has died, the next changing verb finishes or undoes the change. While the owner
lives, no other verb may change that session.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any


class Intent:
    """A verb that changes one session now."""

    __slots__ = ("at", "data", "name", "owner", "session_id", "verb")

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
        return [
            Intent(session_id, name, verb, owner=json.loads(owner), at=at, data=json.loads(data))
            for session_id, name, verb, owner, at, data in rows
        ]

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
