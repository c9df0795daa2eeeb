"""Databases with any values and damaged bytes: a root's, its copies, the user's, and a board of Hermes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.adapters.kanban.conftest import HERMES
from tests.adapters.store.making import new_row
from tests.conftest import settle_in
from tests.fuzz import oracle
from tests.fuzz.bad_input import TEXTS, damaged, examples, json_texts
from tests.fuzz.command import run
from tests.fuzz.test_transcripts import CELLS

import mam
from mam.adapters.kanban.hermes_board import HermesBoard
from mam.adapters.store.tables import jobs, messages, teams
from mam.app.roots.restore_source import open_source
from mam.core.errors import Broken, MamError
from mam.core.job_file_format import DEFAULTS

# A restore asks the servers of the run for the panes of the root; none runs.
pytestmark = pytest.mark.starts
NOON = 1_794_744_000.0
READING = (
    "ls --all",
    "status one",
    "explain two",
    "log",
    "inbox one",
    "job list",
    "job status 00ab12cd",
    "job logs 00ab12cd",
    "team list",
    "task list",
    "board list",
    "doctor",
    "backup --list",
)
# A sharp value of each kind that SQLite has.
VALUES = CELLS | some.sampled_from(
    [b"", b"\xff\x00", "[1]", "{}", "5", "1" * 5000, "[" * 100_000, '{"a": 1e999}']
)


def fill(fleet: mam.Fleet) -> None:
    """Record something in each table that a verb shows."""

    def work(transaction: Any) -> None:
        transaction.add(new_row(1, status="stopped", name="one"))
        transaction.add(new_row(2, name="two"))
        facts = {"id": "m_1", "session_id": "s_00000001", "sender": "user", "text": "x", "is_command": False}
        messages.add(
            transaction, {**facts, "wanted": "ready", "state": "held", "reason": None, "conversation": None}
        )
        jobs.add(transaction, "00ab12cd", "do it", dict(DEFAULTS))
        teams.add(transaction, id="team", name="team", server="mam-none", layout="tiled", by="user")
        member = {
            "team_id": "team",
            "session_id": "s_00000001",
            "name": "one",
            "role": "dev",
            "colour": "red",
        }
        teams.add_member(transaction, **member, name_source="auto", workspace="/", state="active")

    fleet.init()
    fleet._access.context.registry.change(work)
    fleet.tasks.add("task", role="dev")
    card = fleet.boards.create("card", key="k")["card"]["id"]
    fleet.boards.comment(card, "words")


class Place:
    """A root that is filled anew from a template, and a user state likewise."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.root, self.template = folder / "root", folder / "template"
        self.copy = folder / "copy.db"
        self.state_home = home / ".local" / "state" / "mam"
        self.root.mkdir()
        with mam.open(str(self.root)) as fleet:
            fill(fleet)
            fleet.monitor.backup_to(str(self.copy), with_secrets=True)
        shutil.copytree(self.root, self.template)
        shutil.copytree(self.state_home, folder / "user")
        self.user = folder / "user"
        self.columns = columns_of(self.copy)

    def renew(self) -> None:
        """Bring root and user state back; the folders themselves stay, because the root is known by them."""
        for source, target in ((self.template, self.root), (self.user, self.state_home)):
            for path in target.iterdir():
                if path.name != ".mam":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            if (target / ".mam").exists():
                for path in (target / ".mam").iterdir():
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
            shutil.copytree(source, target, dirs_exist_ok=True)

    def run(self, words: str) -> tuple[int, str, str]:
        return run([words.split(maxsplit=1)[0], "--workspace", str(self.root), *words.split()[1:]])

    def check_reads(self) -> None:
        for words in READING:
            code, out, err = self.run(words)
            assert code in (0, 1, 2, 64, 65), (words, out, err)
            assert "Traceback" not in out + err
            assert oracle.is_printable_screen(out + err), words


Column = tuple[str, str, Any]


def columns_of(path: Path) -> list[Column]:
    """Return table, name and value of each column of each table that has a row."""
    with closing(sqlite3.connect(path)) as connection:
        connection.row_factory = sqlite3.Row
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
        found: list[Column] = []
        for (table,) in tables:
            for row in (
                connection.execute(f"SELECT * FROM {table}") if not table.startswith("sqlite_") else ()
            ):
                found += [(table, name, row[name]) for name in row.keys()]  # noqa: SIM118
    return found


Change = tuple[str, str, Any, Any]


def changes(columns: list[Column]) -> some.SearchStrategy[list[Change]]:
    """Draw values for some columns: of the same form if they hold JSON, or any."""

    def change(column: Column) -> some.SearchStrategy[Change]:
        table, name, value = column
        drawn = VALUES
        if isinstance(value, str) and value[:1] in ("{", "["):
            drawn = json_texts([json.loads(value)]).map(lambda text: text.decode("utf-8", "replace")) | VALUES
        return drawn.map(lambda new: (table, name, value, new))

    return some.lists(some.sampled_from(columns).flatmap(change), min_size=1, max_size=3)


SHARP = (
    ("jobs", "created_at", "text"),
    ("log", "at", "text"),
    ("board_tasks", "created_at", b"\0"),
    ("sessions", "data", "[1]"),
)


def old_values(place: Place, table: str, column: str) -> list[Any]:
    found = [value for other, name, value in place.columns if (other, name) == (table, column)]
    assert found, f"{table} has no {column}"
    return found


def put(path: Path, drawn: list[Change]) -> None:
    """Put values in the place of others, as far as the table allows it."""
    with closing(sqlite3.connect(path)) as connection:
        for table, column, old, value in drawn:
            text = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
            with suppress(sqlite3.IntegrityError, sqlite3.OperationalError):
                connection.execute(f"UPDATE {table} SET {column}=? WHERE {column} IS ?", (text, old))
            connection.commit()


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        home = tmp_path_factory.mktemp("home")
        settle_in(home, patch)
        yield Place(tmp_path_factory.mktemp("place"), home)


def test_a_database_with_any_values_is_shown_or_damaged(place):
    @examples(8)
    @given(drawn=changes(place.columns))
    def check(drawn):
        place.renew()
        put(place.root / ".mam" / "state.db", drawn)
        place.check_reads()

    check()
    # Values with which a verb that does not expect them fails, each in a table of its own.
    for table, column, value in SHARP:
        place.renew()
        put(
            place.root / ".mam" / "state.db",
            [(table, column, old, value) for old in old_values(place, table, column)],
        )
        place.check_reads()


def test_a_copy_with_any_values_is_restored_or_refused(place, tmp_path):
    outcomes: set[bool] = set()

    @examples(8)
    @given(drawn=changes(place.columns), dry_run=some.booleans())
    def check(drawn, dry_run):
        place.renew()
        source = tmp_path / "copy.db"
        shutil.copy(place.copy, source)
        put(source, drawn)
        before = place.run("ls --json")
        with oracle.unchanged(source), mam.open(str(place.root)) as fleet:
            answer = oracle.read(fleet.restore, str(source), is_confirmed=True, dry_run=dry_run)
        outcomes.add(isinstance(answer, MamError))
        if isinstance(answer, MamError) or dry_run:
            assert place.run("ls --json") == before, "a refused copy changes nothing"
        else:
            json.dumps(answer, allow_nan=False)
        place.check_reads()

    check()
    assert False in outcomes, "no example is restored"


@pytest.mark.promise("P46")
def test_a_copy_with_damaged_bytes_is_restored_or_refused(place, tmp_path):
    whole = place.copy.read_bytes()
    source = tmp_path / "copy.db"

    @examples(25)
    @given(content=damaged([whole]))
    def check(content):
        source.write_bytes(content)
        with oracle.unchanged(source), oracle.bounded():
            try:
                with open_source(str(source), str(tmp_path / "user")) as opened:
                    assert opened.root_id is None or len(opened.root_id) == 16
                    json.dumps([opened.tokens, opened.made_at], allow_nan=False)
            except MamError as error:
                oracle.check_error(error)
        assert not list((tmp_path / "user" / "scratch").iterdir())

    check()


def test_the_user_state_with_any_values_is_used_or_damaged(place):
    columns = columns_of(place.user / "user.db")

    @examples(5)
    @given(drawn=changes(columns))
    def check(drawn):
        place.renew()
        put(place.state_home / "user.db", drawn)
        place.check_reads()
        for words in ("forget one", "archive one", "init"):
            code, out, err = place.run(words)
            assert code in (0, 1, 2, 64, 65), (words, out, err)

    check()


def test_the_user_state_with_damaged_bytes_is_used_or_damaged(place):
    whole = (place.user / "user.db").read_bytes()

    @examples(4)
    @given(content=damaged([whole]))
    def check(content):
        place.renew()
        (place.state_home / "user.db").write_bytes(content)
        place.check_reads()

    check()


CARD = {
    "id": "t_1",
    "title": "a card",
    "status": "ready",
    "created_at": int(NOON),
    "workspace_kind": "dir",
    "workspace_path": "/abs/demo",
    "skills": '["x"]',
    "goal_mode": 1,
}
HERMES_ROWS = {
    "tasks": CARD,
    "task_comments": {"task_id": "t_1", "author": "user", "body": "words", "created_at": int(NOON)},
    "task_runs": {"task_id": "t_1", "status": "running", "started_at": int(NOON)},
    "task_events": {"task_id": "t_1", "kind": "created", "payload": "{}", "created_at": int(NOON)},
}


HERMES_COLUMNS = [(table, name, value) for table, row in HERMES_ROWS.items() for name, value in row.items()]


@examples(40)
@given(drawn=changes(HERMES_COLUMNS))
def test_a_board_of_hermes_with_any_values_is_shown_or_refused(tmp_path_factory, drawn):
    path = tmp_path_factory.getbasetemp() / "fuzz-kanban.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(HERMES)
        for table, row in HERMES_ROWS.items():
            marks = ",".join("?" * len(row))
            connection.execute(f"INSERT INTO {table}({','.join(row)}) VALUES({marks})", tuple(row.values()))
        connection.commit()
    put(path, drawn)
    board = HermesBoard(str(path), lambda: NOON)
    for call in (
        board.list,
        lambda: board.show("t_1"),
        lambda: board.comment("t_1", "user", "more"),
        lambda: board.claim("t_1", "worker"),
        lambda: board.create("another", key="k"),
    ):
        found = oracle.read(call)
        assert not isinstance(found, Broken)


@pytest.mark.parametrize(
    "text", [text for text in TEXTS if "\0" not in text and text], ids=lambda text: repr(text[:8])
)
def test_a_current_board_of_any_name_is_no_other_file(tmp_path, text):
    from mam.adapters.kanban.hermes_board import find

    (tmp_path / ".hermes" / "kanban").mkdir(parents=True)
    (tmp_path / ".hermes" / "kanban" / "current").write_bytes(text.encode("utf-8", "surrogatepass"))
    for environ in ({}, {"HERMES_KANBAN_BOARD": text}):
        assert oracle.read(find, {"HOME": str(tmp_path), **environ}) == str(
            tmp_path / ".hermes" / "kanban.db"
        )
