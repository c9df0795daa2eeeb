"""The board of Hermes: mam finds it as Hermes does, never creates it, and refuses unknown versions."""

import sqlite3
import subprocess
import sys
import threading
from contextlib import closing, suppress

import pytest

from mam.adapters.kanban.hermes_board import HermesBoard, claim_seconds, find
from mam.core.errors import Conflict, Damaged, ReadOnly, RegistryBusy, Unavailable


@pytest.fixture
def boards(tmp_path):
    """A home of Hermes with a second board."""
    folder = tmp_path / "home" / ".hermes" / "kanban" / "boards" / "second"
    folder.mkdir(parents=True)
    (folder / "board.json").write_text("{}", encoding="utf-8")
    return tmp_path / "home"


def test_where_it_is(boards, tmp_path) -> None:
    home, native = {"HOME": str(boards)}, boards / ".hermes"
    second = str(native / "kanban" / "boards" / "second" / "kanban.db")
    cases = [
        ({}, str(native / "kanban.db")),
        ({"HERMES_KANBAN_DB": "/x/y.db"}, "/x/y.db"),
        ({"HERMES_KANBAN_DB": "/x/y.db", "HERMES_KANBAN_BOARD": "second"}, "/x/y.db"),
        ({"HERMES_KANBAN_BOARD": "second"}, second),
        ({"HERMES_KANBAN_BOARD": " Second "}, second),
        ({"HERMES_KANBAN_BOARD": "../../x"}, str(native / "kanban.db")),
        ({"HERMES_KANBAN_BOARD": "missing"}, str(native / "kanban.db")),
        ({"HERMES_HOME": str(native / "profiles" / "coder")}, str(native / "kanban.db")),
        ({"HERMES_HOME": "/data"}, "/data/kanban.db"),
        ({"HERMES_HOME": "/data/profiles/coder"}, "/data/kanban.db"),
        ({"HERMES_HOME": "/data", "HERMES_KANBAN_HOME": str(tmp_path)}, str(tmp_path / "kanban.db")),
    ]
    for environ, path in cases:
        assert find({**home, **environ}) == path, environ
    (native / "kanban" / "current").write_text("second\n", encoding="utf-8")
    assert find(home) == second
    assert find({**home, "HERMES_KANBAN_BOARD": "default"}) == str(native / "kanban.db")


def test_it_is_never_made(tmp_path, clock) -> None:
    board = HermesBoard(str(tmp_path / "none.db"), clock)
    for call in (board.list, lambda: board.create("one")):
        with pytest.raises(Unavailable, match="no Hermes board"):
            call()
    assert not list(tmp_path.iterdir())


def test_a_file_that_goes_away_is_not_made_again(hermes_file, hermes, tmp_path, monkeypatch) -> None:
    facts = hermes_file.stat()
    hermes_file.unlink()
    with monkeypatch.context() as patch:
        patch.setattr("mam.adapters.kanban.hermes_board.os.stat", lambda path: facts)
        with pytest.raises(ReadOnly):
            hermes.list()
    assert not hermes_file.exists()


def test_nobody_writes_between_our_look_and_our_change(hermes_file, hermes) -> None:
    card = hermes.create("one").id

    def work(connection):
        connection.card(card)
        with (
            closing(sqlite3.connect(hermes_file, timeout=0, isolation_level=None)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("BEGIN IMMEDIATE")

    hermes.write(work)


def test_another_schema_is_refused(hermes_file, hermes) -> None:
    with sqlite3.connect(hermes_file) as connection:
        connection.execute("ALTER TABLE tasks DROP COLUMN goal_mode")
    connection.close()
    before = hermes_file.read_bytes()
    for call in (hermes.list, lambda: hermes.create("one")):
        with pytest.raises(Unavailable, match="tasks has no goal_mode"):
            call()
    assert hermes_file.read_bytes() == before


def test_what_is_no_database_is_refused(tmp_path, clock) -> None:
    path = tmp_path / "kanban.db"
    path.write_bytes(b"not a database, but long enough to be looked at as one" * 40)
    with pytest.raises(Damaged):
        HermesBoard(str(path), clock).list()


def test_it_waits_for_a_writer_and_then_says_so(hermes_file, hermes, monkeypatch) -> None:
    monkeypatch.setattr("mam.adapters.kanban.hermes_board._BUSY_SECONDS", 0.01)
    other = sqlite3.connect(hermes_file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(RegistryBusy):
            hermes.create("one")
    finally:
        other.close()
    assert hermes.create("one").status == "ready"


def test_of_many_claims_one_wins(hermes_file, hermes, clock) -> None:
    card = hermes.create("one").id
    won: list[str] = []

    def claim(number: int) -> None:
        with suppress(Conflict):
            won.append(HermesBoard(str(hermes_file), clock).claim(card, f"host:{number}").claimed_by or "")

    threads = [threading.Thread(target=claim, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [hermes.show(card).claimed_by]


@pytest.mark.parametrize(
    ("text", "seconds"), [("", None), ("x", None), ("0", None), ("120", 120), ("9" * 5000, None), ("²", None)]
)
def test_how_long_a_claim_lasts(text, seconds) -> None:
    assert claim_seconds({"HERMES_KANBAN_CLAIM_TTL_SECONDS": text}) == seconds


def test_a_strange_path_is_no_option_of_the_database(hermes_file, clock) -> None:
    strange = hermes_file.with_name("a?mode=rwc#%41.db")
    hermes_file.rename(strange)
    assert HermesBoard(str(strange), clock).create("one").status == "ready"


# The dispatcher of Hermes 0.19.0 opens and closes the file after each commit, to compare its length with its
# header. With each close, POSIX releases all locks of the process on the file.
DISPATCHER = """
import sqlite3, sys
board = sqlite3.connect(sys.argv[1], isolation_level=None)
def write(text):
    board.execute("BEGIN IMMEDIATE")
    fields = "task_id, author, body, created_at"
    board.execute(f"INSERT INTO task_comments({fields}) VALUES('t', 'me', ?, 0)", (text,))
    board.execute("COMMIT")
    open(sys.argv[1], "rb").close()
for line in sys.stdin:
    write(line.strip())
    print(line.strip(), flush=True)
"""


@pytest.mark.parametrize("work", ["read", "write"])
def test_what_others_write_is_not_lost_when_we_close(hermes_file, hermes, work) -> None:
    with closing(sqlite3.connect(hermes_file)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    # mam checks the schema only once, so this call keeps the check out of the test.
    hermes.list()
    argv = [sys.executable, "-c", DISPATCHER, str(hermes_file)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as dispatcher:

        def write(text: str) -> None:
            dispatcher.stdin.write(f"{text}\n")
            dispatcher.stdin.flush()
            assert dispatcher.stdout.readline() == f"{text}\n"

        write("claimed")
        if work == "write":
            hermes.create("one")
        else:
            assert hermes.list() == []
        write("spawned")
        comments = hermes.read(
            lambda connection: connection.run("SELECT body FROM {comments}").fetchall(), []
        )
        dispatcher.stdin.close()
    assert comments == [("claimed",), ("spawned",)]
