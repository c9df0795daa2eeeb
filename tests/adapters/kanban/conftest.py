"""Both boards, each in a database of its own, with a clock that the test moves."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from mam.adapters.kanban.hermes_board import HermesBoard
from mam.adapters.kanban.mam_board import MamBoard
from mam.adapters.store import schema

# The tables of Hermes 0.19.0; the conformance tests use the real ones.
HERMES = """
CREATE TABLE tasks(id TEXT PRIMARY KEY, title TEXT NOT NULL, body TEXT, assignee TEXT, status TEXT NOT NULL,
  priority INTEGER DEFAULT 0, created_by TEXT, created_at INTEGER NOT NULL, started_at INTEGER,
  completed_at INTEGER, workspace_kind TEXT NOT NULL DEFAULT 'scratch', workspace_path TEXT, branch_name TEXT,
  claim_lock TEXT, claim_expires INTEGER, tenant TEXT, result TEXT, idempotency_key TEXT,
  consecutive_failures INTEGER NOT NULL DEFAULT 0, worker_pid INTEGER, last_failure_error TEXT,
  max_runtime_seconds INTEGER, last_heartbeat_at INTEGER, current_run_id INTEGER, current_step_key TEXT,
  skills TEXT, max_retries INTEGER, goal_mode INTEGER NOT NULL DEFAULT 0, goal_max_turns INTEGER,
  block_kind TEXT, block_recurrences INTEGER NOT NULL DEFAULT 0);
CREATE TABLE task_comments(id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, author TEXT NOT NULL,
  body TEXT NOT NULL, created_at INTEGER NOT NULL);
CREATE TABLE task_events(id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, run_id INTEGER,
  kind TEXT NOT NULL, payload TEXT, created_at INTEGER NOT NULL);
CREATE TABLE task_runs(id INTEGER PRIMARY KEY AUTOINCREMENT, task_id TEXT NOT NULL, profile TEXT,
  step_key TEXT, status TEXT NOT NULL, claim_lock TEXT, claim_expires INTEGER, worker_pid INTEGER,
  max_runtime_seconds INTEGER,
  last_heartbeat_at INTEGER, started_at INTEGER NOT NULL, ended_at INTEGER, outcome TEXT, summary TEXT,
  metadata TEXT, error TEXT);
CREATE TABLE task_links(parent_id TEXT NOT NULL, child_id TEXT NOT NULL, PRIMARY KEY(parent_id, child_id));
"""


class Clock:
    """A clock that moves only when the test moves it."""

    def __init__(self) -> None:
        self.at = 1_794_700_000.0

    def __call__(self) -> float:
        return self.at


class Database:
    """A database that runs work with its connection, as the registry does."""

    def __init__(self, path, clock) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for step in (*schema.STATE_MIGRATIONS, *(step for _, _, step in schema.STATE_ADDITIONS)):
            self.connection.executescript(step)
        self.now = clock

    def read(self, work, default):
        return work(self.connection)

    def write(self, work):
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(self.connection)
        except BaseException:
            self.connection.execute("ROLLBACK")
            raise
        self.connection.execute("COMMIT")
        return result


@pytest.fixture
def clock():
    return Clock()


def make_hermes(folder: Path) -> Path:
    """Create an empty board as Hermes does, and return its file."""
    path = folder / "kanban.db"
    connection = sqlite3.connect(path)
    connection.executescript(HERMES)
    connection.close()
    return path


@pytest.fixture
def hermes_file(quick_path):
    return make_hermes(quick_path)


@pytest.fixture
def hermes(hermes_file, clock):
    return HermesBoard(str(hermes_file), clock)


@pytest.fixture
def mam_board(quick_path, clock):
    database = Database(quick_path / "state.db", clock)
    yield MamBoard(database, str(quick_path / "state.db"))
    database.connection.close()


@pytest.fixture(params=["mam_board", "hermes"])
def board(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def events(board):
    """The kinds of the events of a card, oldest first."""

    def events(card):
        return board.read(
            lambda connection: [
                kind
                for (kind,) in connection.run("SELECT kind FROM {events} WHERE task_id = ? ORDER BY id", card)
            ],
            [],
        )

    return events


@pytest.fixture
def run_of(board):
    """The last run of a card: status, outcome, summary, ended."""

    def run_of(card):
        return board.read(
            lambda connection: connection.run(
                "SELECT status, outcome, summary, ended_at IS NOT NULL FROM {runs}"
                " WHERE task_id = ? ORDER BY id DESC LIMIT 1",
                card,
            ).fetchone(),
            None,
        )

    return run_of
