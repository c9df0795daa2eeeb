"""mam's own board: tables in the same database as the registry.

The owner of the database opens, locks and migrates it. This file gets it as an object with `read` and
`write`.
"""

from __future__ import annotations

from mam.adapters.kanban.sqlite_board import BoardConnection, SqliteBoard

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    T = TypeVar("T")

    class Database(Protocol):
        """A database that runs work with its connection."""

        def read(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
            """Run a read; return `default` without a database."""

        def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
            """Run a change as one transaction that holds the write lock."""

        def now(self) -> float:
            """Return the time of day."""


class MamBoard(SqliteBoard):
    """The board of one root. It has no dispatcher, so anybody may take over an expired claim."""

    name = "ours"
    names = {  # noqa: RUF012
        "tasks": "board_tasks",
        "comments": "board_comments",
        "events": "board_events",
        "runs": "board_runs",
        "links": "board_links",
    }
    claimable = ("ready", "blocked")
    takes_expired = True

    def __init__(self, database: Database, path: str) -> None:
        """Use the tables of an open database."""
        self.path = path
        self._database = database

    def read(self, work: Callable[[BoardConnection], T], default: T) -> T:
        """Run a read."""
        now = self._database.now()
        return self._database.read(
            lambda connection: work(BoardConnection(connection, self.names, now)), default
        )

    def write(self, work: Callable[[BoardConnection], T]) -> T:
        """Run a change."""
        now = self._database.now()
        return self._database.write(lambda connection: work(BoardConnection(connection, self.names, now)))
