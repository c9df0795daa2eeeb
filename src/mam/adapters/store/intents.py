"""Changes that are under way, each with the process that is making it.

An intent is committed before the first effect in the world and removed with the last commit of
its verb. One whose owner has died is finished or cleaned by the next changing verb; one whose
owner lives keeps every other verb off that session.
"""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any


class Intent:
    """A verb in flight on one session."""

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
        """Keep what recovery needs: who, what, since when, and the verb's own notes."""
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
        found = self.connection.execute(
            "SELECT session_id, name, verb, owner, at, data FROM intents ORDER BY at"
        )
        return [
            Intent(session_id, name, verb, owner=json.loads(owner), at=at, data=json.loads(data))
            for session_id, name, verb, owner, at, data in found
        ]

    def of(self, session_id: str, name: str | None = None) -> Intent | None:
        """Return the intent on a session, by id or by the name it is taking."""
        return next(
            (one for one in self.all() if one.session_id == session_id or (name and one.name == name)), None
        )

    def put(self, intent: Intent) -> None:
        """Commit to a change, or note how far it got."""
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
        """Remove the intent of a change that is whole, or was given up.

        With `at` only the one of that time: a verb that ended its own with its last commit must not
        remove the next verb's.
        """
        self.connection.execute(
            "DELETE FROM intents WHERE session_id=? AND (?2 IS NULL OR at=?2)", (session_id, at)
        )
