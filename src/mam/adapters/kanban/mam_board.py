"""Our own board: tables beside the registry, in the same database.

It is opened, locked and migrated by whoever owns that database, and handed in here as two functions.
"""

from __future__ import annotations

from mam.adapters.kanban.card_tables import Hand, TableBoard

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Protocol, TypeVar

    T = TypeVar("T")

    class Database(Protocol):
        """A database that gives its connection to a piece of work."""

        def read(self, work: Callable[[sqlite3.Connection], T], default: T) -> T:
            """Run a read; `default` where there is no database yet."""

        def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
            """Run a change as one transaction that holds the write lock."""

        def now(self) -> float:
            """Return the time of day."""


class OurBoard(TableBoard):
    """The board of one root. No dispatcher looks after it: a claim that ran out is anybody's."""

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

    def read(self, work: Callable[[Hand], T], default: T) -> T:
        """Run a read."""
        now = self._database.now()
        return self._database.read(lambda connection: work(Hand(connection, self.names, now)), default)

    def write(self, work: Callable[[Hand], T]) -> T:
        """Run a change."""
        now = self._database.now()
        return self._database.write(lambda connection: work(Hand(connection, self.names, now)))
