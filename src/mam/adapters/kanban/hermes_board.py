"""The board of Hermes: mam finds its SQLite file as Hermes does, and never creates or migrates it.

The command line of Hermes takes 0.6 s per call, and its exit status does not tell whether a call succeeded.
Hermes documents the file as an interface: writers use BEGIN IMMEDIATE and add an event for each change.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, contextmanager

from mam.adapters.kanban.sqlite_board import BoardConnection, SqliteBoard
from mam.core.errors import Damaged, MamError, ReadOnly, RegistryBusy, Unavailable
from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import TypeVar

    T = TypeVar("T")

_DEFAULT = "default"
_SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_BUSY_SECONDS = 5.0
# The columns that mam uses. A board without one of them is of a version that mam was not tested with.
_NEEDED = {
    "tasks": "id title body assignee status priority created_by created_at started_at completed_at"
    " workspace_kind workspace_path claim_lock claim_expires idempotency_key consecutive_failures worker_pid"
    " max_runtime_seconds last_heartbeat_at current_run_id current_step_key max_retries goal_mode"
    " goal_max_turns block_kind block_recurrences branch_name skills",
    "task_comments": "id task_id author body created_at",
    "task_events": "id task_id run_id kind payload created_at",
    "task_runs": "id task_id profile step_key status claim_lock claim_expires worker_pid max_runtime_seconds"
    " last_heartbeat_at started_at ended_at outcome summary",
    "task_links": "parent_id child_id",
}


class HermesBoard(SqliteBoard):
    """A board of Hermes. mam leaves expired claims to the dispatcher of Hermes."""

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
        """Store the file's path. Each call opens the file again, because it may have been replaced."""
        self.path = path
        self._clock = clock
        self.ttl = ttl or self.ttl
        self._checked: tuple[int, int] | None = None

    def read(self, work: Callable[[BoardConnection], T], default: T) -> T:
        """Run a read at one moment."""
        with self._open() as connection:
            connection.execute("BEGIN")
            return work(BoardConnection(connection, self.names, self._clock()))

    def write(self, work: Callable[[BoardConnection], T]) -> T:
        """Run a change under the write lock; undo it if it raises."""
        # The connection for reading stays open meanwhile, for the reason in `_open`.
        with self._open(), closing(_connect(self.path, "rw")) as connection:
            connection.execute("BEGIN IMMEDIATE")
            result = work(BoardConnection(connection, self.names, self._clock()))
            connection.execute("COMMIT")
            return result

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the file for reading, so that closing it never removes its log.

        SQLite removes the log when the last connection closes. Hermes 0.19 opens and closes the file after
        each commit, and so loses its locks. Its dispatcher would then write into a removed log, and those
        changes would be lost. A connection for reading cannot remove the log, and while it is open, no other
        connection of this process removes it.
        """
        try:
            facts = os.stat(self.path)
        except OSError as error:
            raise Unavailable(
                f"there is no Hermes board at {self.path}: {error.strerror}",
                hint="hermes kanban init creates one; HERMES_KANBAN_DB and HERMES_HOME say where it is",
            ) from error
        # Closing a connection without a commit rolls back.
        try:
            with closing(_connect(self.path, "ro")) as connection:
                # SQLite takes the shared lock only with the first read.
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
                if self._checked != (facts.st_dev, facts.st_ino):
                    _check(connection, self.path)
                    self._checked = (facts.st_dev, facts.st_ino)
                yield connection
        except sqlite3.Error as error:
            raise _translated(error, self.path) from error


def find(environ: Mapping[str, str]) -> str:
    """Return where Hermes looks for its board: the file in HERMES_KANBAN_DB, else the current board."""
    if path := environ.get("HERMES_KANBAN_DB", "").strip():
        return os.path.expanduser(path)
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
    """Return the seconds of a claim if the environment sets them, else None."""
    text = environ.get("HERMES_KANBAN_CLAIM_TTL_SECONDS", "").strip()
    return whole_number(text) or None


def _home(environ: Mapping[str, str]) -> str:
    """Return the home folder of Hermes, whose profiles share one board."""
    if kanban_home := environ.get("HERMES_KANBAN_HOME", "").strip():
        return os.path.expanduser(kanban_home)
    native = os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".hermes")
    hermes_home = environ.get("HERMES_HOME", "")
    if not hermes_home:
        return native
    if (os.path.realpath(hermes_home) + os.sep).startswith(os.path.realpath(native) + os.sep):
        return native
    above = os.path.dirname(hermes_home.rstrip(os.sep))
    return os.path.dirname(above) if os.path.basename(above) == "profiles" else hermes_home


def _current(home: str) -> str:
    try:
        with open(os.path.join(home, "kanban", "current"), encoding="utf-8") as file:
            return file.read(200)
    except (OSError, UnicodeDecodeError):
        return ""


def _connect(path: str, mode: str) -> sqlite3.Connection:
    # With a mode, SQLite does not create a file that was removed meanwhile.
    quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    connection = sqlite3.connect(
        f"file:{quoted}?mode={mode}", uri=True, timeout=_BUSY_SECONDS, isolation_level=None
    )
    # Hermes uses the same settings.
    for pragma in ("synchronous=FULL", "wal_autocheckpoint=100", "foreign_keys=ON", "secure_delete=ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check(connection: sqlite3.Connection, path: str) -> None:
    for table, columns in _NEEDED.items():
        present = {row[1] for row in connection.execute("SELECT * FROM pragma_table_info(?)", (table,))}
        if missing := sorted(set(columns.split()) - present):
            raise Unavailable(
                f"mam does not know the board {path}: {table} has no {', '.join(missing[:3])}",
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
