"""A schema has two numbers: an older mam goes on with more additions, and refuses more migrations."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
from tests.adapters.store.making import NOON, Store, new_row

from mam.adapters.store import backup_file, database, schema
from mam.adapters.store.registry import Registry
from mam.adapters.store.root_identity import RootIdentity
from mam.adapters.store.root_safety import RootSafety
from mam.adapters.store.user_state import UserState
from mam.core.errors import DiskFull, SchemaTooNew

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "0.1.0" / "every-status"
MAJOR, MINOR = len(schema.STATE_MIGRATIONS), len(schema.STATE_ADDITIONS)
# The schema of the golden state.
OLD = (1, 0)


def digest(path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def with_golden(store: Store) -> Store:
    """Put the state of mam 0.1.0 into a root, with a write-ahead log as that mam has it."""
    store.paths.make()
    store.yaml.write_bytes((GOLDEN / "agent-sessions.yaml").read_bytes())
    connection = sqlite3.connect(store.paths.db)
    connection.executescript((GOLDEN / "state.sql").read_text(encoding="utf-8"))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    store.db.chmod(0o600)
    return store


@pytest.fixture
def old(quick_path):
    """A root of mam 0.1.0 that the user state knows, and the registry of today's mam."""
    folder = quick_path / "user"
    root = quick_path / "root"
    root.mkdir()
    store = Store(root)
    user = UserState(str(folder), lambda: NOON)
    safety = RootSafety(store.paths)
    identity = RootIdentity(store.paths, user, lambda: NOON, safety)
    store.registry = Registry(store.paths, lambda: NOON, identity, safety)
    # What the take-over of the user state of mam 0.1.0 leaves.
    user.forget_root("none")
    connection = sqlite3.connect(user.path, isolation_level=None)
    connection.execute("INSERT INTO roots VALUES(?, ?, 1)", (str(root), store.paths.yaml))
    connection.close()
    with_golden(store)
    yield store
    store.registry.close()
    user.close()


def copies(store: Store) -> list[Path]:
    return sorted((store.root.parent / "user" / "backups").glob("*/*.db"))


def numbers(path) -> tuple[int, int]:
    connection = sqlite3.connect(path)
    try:
        return database.schema_number(connection)
    finally:
        connection.close()


def test_e3_reading_leaves_an_older_database_as_it_was(old) -> None:
    before = digest(old.db)
    expected = json.loads((GOLDEN / "expected.json").read_text(encoding="utf-8"))["rows"]
    assert [row["id"] for row in old.registry.view().rows] == [row["id"] for row in expected]
    has_codes = "SELECT count(reason_code) FROM messages"
    read = old.registry.peek(lambda transaction: transaction.connection.execute(has_codes).fetchone(), None)
    assert read == (0,), "what is read is as new as this mam"
    old.registry.close()
    assert digest(old.db) == before
    assert numbers(old.db) == OLD
    assert copies(old) == []


def test_e3_a_reader_of_an_older_database_sees_what_the_older_mam_commits(old) -> None:
    assert len(old.registry.view().rows) == 4
    first = old.registry.commit_number()
    connection = sqlite3.connect(old.db, isolation_level=None)
    connection.execute("DELETE FROM sessions WHERE id='s_00000004'")
    connection.execute("INSERT OR REPLACE INTO meta VALUES('mark', '1')")
    connection.close()
    assert old.registry.commit_number() != first
    marked = old.registry.peek(lambda transaction: transaction.meta("mark"), None)
    assert marked == 1


@pytest.mark.promise("P12")
def test_e3_a_change_migrates_after_a_copy_was_made(old) -> None:
    rows = old.registry.view().rows
    old.touch()
    assert numbers(old.db) == (MAJOR, MINOR)
    (copy,) = copies(old)
    assert copy.name.endswith("-before-migration-of-1.0.db")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert copy.parent.name == old.registry.root.verdict().id
    connection = sqlite3.connect(copy)
    kept = {key for (key,) in connection.execute("SELECT id FROM sessions")}
    connection.close()
    assert numbers(copy) == OLD
    assert kept == {row["id"] for row in rows}
    old.touch()
    assert copies(old) == [copy], "the next change finds nothing to migrate"


@pytest.mark.promise("P12")
def test_e3_without_room_for_the_copy_nothing_is_migrated(old, monkeypatch) -> None:
    before = digest(old.db)

    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(backup_file, "_fill", full)
        with pytest.raises(DiskFull, match="before-migration"):
            old.touch()
    assert numbers(old.db) == OLD
    assert digest(old.db) == before
    assert old.registry.view().rows, "it can be read all the same"
    old.touch()
    assert len(copies(old)) == 1


def test_more_additions_do_not_keep_an_older_mam_from_going_on(store, monkeypatch) -> None:
    store.add(new_row(1))
    store.registry.close()
    number = MINOR + 1
    newer = ("sessions", "later", "ALTER TABLE sessions ADD COLUMN later TEXT DEFAULT 'x';\n")
    with monkeypatch.context() as patch:
        patch.setattr(schema, "STATE_ADDITIONS", (*schema.STATE_ADDITIONS, newer))
        store.touch()
        store.registry.close()
    assert numbers(store.db) == (MAJOR, number)
    store.add(new_row(2))
    store.registry.close()
    assert numbers(store.db) == (MAJOR, number), "the number stays, and so do the additions"
    connection = sqlite3.connect(store.db)
    assert connection.execute("SELECT id, later FROM sessions ORDER BY id").fetchall() == [
        ("s_00000001", "x"),
        ("s_00000002", "x"),
    ]
    connection.close()


def test_a_newer_major_names_the_mam_that_wrote_it(store) -> None:
    store.add(new_row(1))
    store.registry.close()
    connection = sqlite3.connect(store.db, isolation_level=None)
    connection.execute(f"PRAGMA user_version={MAJOR + 1}")
    newest = json.dumps({"version": "7.0", "program": "/nowhere"})
    connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (database.NEWEST, newest))
    connection.close()
    before = digest(store.db)
    for attempt in (store.again().view, store.touch):
        with pytest.raises(SchemaTooNew, match=rf"by mam 7\.0 \(schema {MAJOR + 1}\.{MINOR}, this one knows"):
            attempt()
    assert digest(store.db) == before


def test_a_migration_forgets_which_mam_wrote_the_schema_before(tmp_path) -> None:
    """A death before the next change must not make the message name a mam that cannot read it either."""
    path = str(tmp_path / "x.db")
    connection = database.connect(path, schema.STATE_MIGRATIONS[:-1], schema.STATE_ADDITIONS, create=True)
    connection.execute("INSERT INTO meta VALUES(?, ?)", (database.NEWEST, json.dumps({"version": "0.1.5"})))
    connection.close()
    database.connect(path, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS, create=False).close()
    with pytest.raises(SchemaTooNew, match="was written by a newer mam"):
        database.connect(path, schema.STATE_MIGRATIONS[:-1], create=False)


@pytest.mark.parametrize("number", range(MINOR), ids=lambda n: "-".join(schema.STATE_ADDITIONS[n][:2]))
def test_the_code_before_an_addition_can_write_after_it(number, tmp_path) -> None:
    """Rows that name the columns of before go in as before: the additions have defaults, and bind nothing."""
    path = str(tmp_path / "x.db")
    connection = database.connect(path, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS[:number], create=True)
    columns = columns_of(connection)
    accepted = {table: insert(connection, table, columns[table], "before") for table in columns}
    connection.close()
    connection = database.connect(
        path, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS[: number + 1], create=False
    )
    for table in columns:
        assert accepted[table], table
        assert insert(connection, table, columns[table], "after"), table
        names = ", ".join(f'"{name}"' for name, *_ in columns[table])
        rows = connection.execute(f'SELECT {names} FROM "{table}"').fetchall()
        assert len(rows) >= 2, "both rows are there"
        assert set(names_now := columns_of(connection)[table]) >= set(columns[table]), names_now
    connection.close()


def columns_of(connection) -> dict[str, list[tuple[str, str, int, int]]]:
    """Return the columns of each table: name, type, whether it must have a value, its place in the key."""
    query = "SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'"
    tables = [name for (name,) in connection.execute(query)]
    info = 'SELECT name, type, "notnull", pk FROM pragma_table_info(?)'
    return {table: connection.execute(info, (table,)).fetchall() for table in tables}


def insert(connection, table, columns, mark) -> bool:
    """Insert a row that differs from others of its table by its mark alone."""
    values = []
    for name, kind, _, _ in columns:
        if kind in ("INTEGER", "REAL"):
            values.append(1 if mark == "before" else 2)
        else:
            values.append("null" if name == "value" else mark)
    names = ", ".join(f'"{name}"' for name, *_ in columns)
    marks = ", ".join("?" * len(columns))
    done = connection.execute(f'INSERT INTO "{table}"({names}) VALUES({marks})', values)
    return done.rowcount == 1


def test_the_user_state_is_copied_beside_before_it_is_migrated(tmp_path) -> None:
    folder = tmp_path / "user"
    folder.mkdir()
    path = folder / "user.db"
    major = len(schema.USER_MIGRATIONS) - 1
    connection = database.connect(str(path), schema.USER_MIGRATIONS[:major], create=True, with_wal=False)
    connection.execute("INSERT INTO roots VALUES('/a', '/a/x.yaml', 1)")
    connection.close()
    before = digest(path)
    user = UserState(str(folder), lambda: NOON)
    assert user.roots() == [("/a", "/a/x.yaml")]
    assert digest(path) == before, "reading leaves it as it was"
    user.forget_root("none")
    assert user.roots() == [("/a", "/a/x.yaml")]
    user.close()
    assert numbers(path)[0] == len(schema.USER_MIGRATIONS)
    (copy,) = folder.glob("user-*-before-migration-of-*.db")
    assert numbers(copy)[0] == major
    assert copy.stat().st_mode & 0o777 == 0o600
