"""Hermes' own board: its SQLite file, found as Hermes finds it, never made and never migrated here.

Hermes has a command line for all of this, which takes 0.6 s a call and whose exit status says nothing. The
file is its documented meeting point: writers hold BEGIN IMMEDIATE and leave an event for each change.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, contextmanager

from mam.adapters.kanban.card_tables import Hand, TableBoard
from mam.core.errors import Damaged, MamError, ReadOnly, RegistryBusy, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeVar

    T = TypeVar("T")

_DEFAULT = "default"
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_BUSY_SECONDS = 5.0
# What our statements use; a board without one of them is of a version that nobody looked at.
_NEEDED = {
    "tasks": "id title body assignee status priority created_by created_at started_at completed_at"
    " workspace_kind workspace_path claim_lock claim_expires idempotency_key consecutive_failures worker_pid"
    " max_runtime_seconds last_heartbeat_at current_run_id current_step_key max_retries goal_mode"
    " goal_max_turns block_kind block_recurrences",
    "task_comments": "id task_id author body created_at",
    "task_events": "id task_id run_id kind payload created_at",
    "task_runs": "id task_id profile step_key status claim_lock claim_expires worker_pid max_runtime_seconds"
    " last_heartbeat_at started_at ended_at outcome summary",
    "task_links": "parent_id child_id",
}


class HermesBoard(TableBoard):
    """One of Hermes' boards. Claims that ran out are the dispatcher's business, and left to it."""

    name = "hermes"
    names = {  # noqa: RUF012
        "tasks": "tasks",
        "comments": "task_comments",
        "events": "task_events",
        "runs": "task_runs",
        "links": "task_links",
    }
    block_limit = 2

    def __init__(self, path: str, clock: Callable[[], float], *, ttl: int | None = None) -> None:
        """Take the file's path; it is opened anew for each call, as nothing says when it is replaced."""
        self.path = path
        self._clock = clock
        self.ttl = ttl or self.ttl
        self._checked: tuple[int, int] | None = None

    def read(self, work: Callable[[Hand], T], default: T) -> T:
        """Run a read of one moment."""
        with self._open() as connection:
            connection.execute("BEGIN")
            return work(Hand(connection, self.names, self._clock()))

    def write(self, work: Callable[[Hand], T]) -> T:
        """Run a change under the write lock; it is undone where it raises."""
        # The one that reads stays open meanwhile, for what `_open` says.
        with self._open(), closing(_connect(self.path, "rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            result = work(Hand(connection, self.names, self._clock()))
            connection.execute("COMMIT")
            return result

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for reading, so that closing it never removes its log.

        SQLite removes the log with the last connection, and Hermes 0.19 gives its locks away: it opens and
        closes the file after each commit. What its dispatcher then writes would be in a removed log, and
        lost. A connection that only reads cannot remove the log, and while it is open no other one of this
        process does.
        """
        try:
            facts = os.stat(self.path)
        except OSError as error:
            raise Unavailable(
                f"there is no Hermes board at {self.path}: {error.strerror}",
                hint="hermes kanban init makes one; HERMES_KANBAN_DB and HERMES_HOME say where it is",
            ) from error
        # Closing without a commit rolls back.
        try:
            with closing(_connect(self.path, "ro")) as connection:
                # Only who has read something has a lock.
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                if self._checked != (facts.st_dev, facts.st_ino):
                    _check(connection, self.path)
                    self._checked = (facts.st_dev, facts.st_ino)
                yield connection
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error


def find(environ: Mapping[str, str]) -> str:
    """Return where Hermes would look for its board: the file named, else that of the board in use."""
    if named := environ.get("HERMES_KANBAN_DB", "").strip():
        return os.path.expanduser(named)
    home = _home(environ)
    for text in (environ.get("HERMES_KANBAN_BOARD", ""), _current(home)):
        slug = text.strip().lower()
        if slug == _DEFAULT:
            break
        folder = os.path.join(home, "kanban", "boards", slug)
        if _SLUG.match(slug) and any(
            os.path.exists(os.path.join(folder, name)) for name in ("board.json", "kanban.db")
        ):
            return os.path.join(folder, "kanban.db")
    return os.path.join(home, "kanban.db")


def claim_seconds(environ: Mapping[str, str]) -> int | None:
    """Return how long a claim lasts where the environment says so."""
    text = environ.get("HERMES_KANBAN_CLAIM_TTL_SECONDS", "").strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) > 0 else None


def _home(environ: Mapping[str, str]) -> str:
    """Return Hermes' root: profiles below it share one board."""
    if pinned := environ.get("HERMES_KANBAN_HOME", "").strip():
        return os.path.expanduser(pinned)
    native = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".hermes")
    named = environ.get("HERMES_HOME", "")
    if not named:
        return native
    if (os.path.realpath(named) + os.sep).startswith(os.path.realpath(native) + os.sep):
        return native
    above = os.path.dirname(named.rstrip(os.sep))
    return os.path.dirname(above) if os.path.basename(above) == "profiles" else named


def _current(home: str) -> str:
    try:
        with open(os.path.join(home, "kanban", "current"), encoding="utf-8") as file:
            return file.read(200)
    except (OSError, UnicodeDecodeError):
        return ""


def _connect(path: str, mode: str) -> sqlite3.Connection:
    # A file that went away in between is not made again.
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{quoted}?mode={mode}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
    )
    # As Hermes opens it.
    for pragma in ("synchronous=FULL", "wal_autocheckpoint=100", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check(connection: sqlite3.Connection, path: str) -> None:
    for table, columns in _NEEDED.items():
        found = {row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (table,))}
        if missing := sorted(set(columns.split()) - found):
            raise Unavailable(
                f"{path} is no board that mam knows: {table} has no {', '.join(missing[:3])}",
                hint="mam was tested with the board of Hermes 0.19",
            )


def _translated(error: sqlite3.Error, path: str) -> MamError:
    name = getattr(error, "sqlite_errorname", None) or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return RegistryBusy(f"{path} is held by another process", hint="repeat the command")
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return ReadOnly(f"{path} cannot be opened for writing", hint="check its owner and mode")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return Damaged(f"{path} is damaged: {error}", hint="hermes kanban init says more")
    return Unavailable(f"{path}: {error}")
