"""The database file is durable and migrated, and each of its failures is an error of mam."""

from __future__ import annotations

import errno
import os
import random
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.adapters.store.making import FIRST, NOON, Store, check_invariants, new_row
from tests.other_user import NOBODY, as_nobody

from mam.adapters.store import database, schema
from mam.adapters.store.intents import Intent
from mam.adapters.store.registry import Registry
from mam.adapters.store.tables import evidence
from mam.adapters.store.user_state import UserState
from mam.core.errors import (
    Damaged,
    DiskFull,
    MamError,
    ReadOnly,
    Refused,
    RegistryBusy,
    RegistryCorrupt,
    SchemaTooNew,
    Unavailable,
    Unwritable,
)

CODES = sorted(
    name
    for name in dir(sqlite3)
    if name.startswith("SQLITE_")
    and isinstance(getattr(sqlite3, name), int)
    and not name.startswith(("SQLITE_LIMIT", "SQLITE_DBCONFIG"))
)
EXPECTED = {
    "SQLITE_BUSY": RegistryBusy,
    "SQLITE_LOCKED": RegistryBusy,
    "SQLITE_FULL": DiskFull,
    "SQLITE_READONLY": ReadOnly,
    "SQLITE_CANTOPEN": ReadOnly,
    "SQLITE_PERM": ReadOnly,
    "SQLITE_IOERR": Unwritable,
    # A full disk has no space for the index of the log.
    "SQLITE_IOERR_SHMSIZE": DiskFull,
    "SQLITE_CORRUPT": RegistryCorrupt,
    "SQLITE_NOTADB": RegistryCorrupt,
}


def raised(error: BaseException, path: str = "/r/state.db") -> MamError:
    with pytest.raises(MamError) as caught, database.errors(path):
        raise error
    return caught.value


@pytest.mark.parametrize("kind", [sqlite3.OperationalError, sqlite3.DatabaseError, sqlite3.IntegrityError])
@pytest.mark.parametrize("name", CODES)
def test_every_code_of_sqlite_is_one_of_ours(name, kind):
    error = kind("some text")
    error.sqlite_errorname, error.sqlite_errorcode = name, getattr(sqlite3, name)
    translated = raised(error)
    prefixes = [prefix for prefix in EXPECTED if name == prefix or name.startswith(f"{prefix}_")]
    if prefixes:
        assert type(translated) is EXPECTED[max(prefixes, key=len)]
    assert "/r/state.db" in str(translated)
    assert translated.exit_code in (2, 65)


@pytest.mark.parametrize("kind", [value for value in vars(sqlite3).values() if isinstance(value, type)])
def test_every_class_of_sqlite_is_one_of_ours(kind):
    if issubclass(kind, sqlite3.Error):
        raised(kind("without a code"))


@pytest.mark.parametrize("name", sorted(errno.errorcode.values()))
def test_every_error_of_the_file_system_is_one_of_ours(name):
    number = getattr(errno, name)
    translated = raised(OSError(number, os.strerror(number), "/r/file"))
    assert isinstance(translated, Unavailable)
    assert "/r/file" in str(translated)
    assert translated.hint
    if name in ("ENOSPC", "EDQUOT"):
        assert type(translated) is DiskFull
    if name in ("EACCES", "EPERM", "EROFS"):
        assert type(translated) is ReadOnly


def test_an_error_without_a_number_is_one_of_ours():
    assert isinstance(raised(OSError("odd")), Unavailable)


class TestOpening:
    def test_durable(self, store):
        connection = store.registry.writer()
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)

    def test_a_newer_schema_is_left_alone(self, three):
        three.registry.close()
        with sqlite3.connect(three.paths.db) as connection:
            connection.execute("PRAGMA user_version=999")
        connection.close()
        before = three.dump()
        for attempt in (three.again().view, three.touch):
            with pytest.raises(SchemaTooNew) as caught:
                attempt()
            major, minor = len(schema.STATE_MIGRATIONS), len(schema.STATE_ADDITIONS)
            numbers = f"(schema 999.{minor}, this one knows {major}.{minor})"
            assert caught.value.message.endswith(f"was written by a newer mam {numbers}")
            own = Path(sys.executable).parent / "mam"
            assert caught.value.hint.startswith(f"use the newer mam; this one is {own}, and ")
        assert three.dump() == before

    def test_migrations_run_once_and_in_order(self, tmp_path):
        path = str(tmp_path / "x.db")
        steps = ["CREATE TABLE a(x);\nINSERT INTO a VALUES(1)"]
        database.connect(path, steps, create=True).close()
        steps.append("INSERT INTO a VALUES(2)")
        for _ in range(2):
            connection = database.connect(path, steps, create=False)
            assert connection.execute("SELECT x FROM a").fetchall() == [(1,), (2,)]
            connection.close()

    def test_a_migration_that_fails_leaves_the_old_schema(self, tmp_path):
        path = str(tmp_path / "x.db")
        database.connect(path, ["CREATE TABLE a(x)"], create=True).close()
        with pytest.raises(MamError):
            database.connect(path, ["CREATE TABLE a(x)", "CREATE TABLE b(x);\nNONSENSE"], create=False)
        connection = database.connect(path, ["CREATE TABLE a(x)"], create=False)
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
        connection.close()
        assert tables == ["a"]

    def test_many_may_be_the_first(self, quick_path):
        """Each thread creates the folder, the database and the file at the same time, and none fails."""
        barrier = threading.Barrier(6)

        def begin(number: int) -> None:
            store = Store(quick_path)
            barrier.wait()
            store.add(new_row(number))
            store.registry.close()

        for _ in range(5):
            with ThreadPoolExecutor(6) as pool:
                list(pool.map(begin, range(1, 7)))
            store = Store(quick_path)
            assert len(store.registry.view().rows) == 6
            check_invariants(store)
            store.registry.close()
            for path in quick_path.rglob("*.*"):
                if path.is_file():
                    path.unlink()

    @pytest.mark.parametrize("content", [b"", b"x", b"SQLite format 3\0" + b"\0" * 200, os.urandom(8192)])
    def test_something_that_is_no_database(self, three, content):
        three.registry.close()
        for path in three.db.parent.glob("state.db-*"):
            path.unlink()
        three.db.write_bytes(content)
        text = three.text()
        try:
            three.again().view()
            three.touch()
            check_invariants(three)
        except RegistryCorrupt as error:
            assert "mam restore" in (error.hint or "")
            assert three.db.read_bytes() == content
            three.registry.close()
            three.db.rename(f"{three.db}.broken")
            three.again()
            three.touch()
            check_invariants(three)
        assert three.text() == text

    def test_damage_anywhere_is_named_or_harmless(self, three):
        three.put(FIRST, note="x")
        three.registry.close()
        content = three.db.read_bytes()
        chance = random.Random(5)
        text = three.text()
        for _ in range(300):
            damaged = bytearray(content)
            for _ in range(chance.choice((1, 1, 4, 64))):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            three.db.write_bytes(damaged)
            three.write(text)
            three.again()
            try:
                three.registry.view()
                three.touch()
                three.registry.note(lambda transaction: transaction.log("user", "test", None))
            except MamError as error:
                assert error.exit_code in (2, 65), error
            three.registry.close()
            for path in three.db.parent.glob("state.db-*"):
                path.unlink()

    def test_a_cut_database_is_named_or_harmless(self, three):
        three.registry.close()
        content = three.db.read_bytes()
        rows = three.registry.view().rows
        three.registry.close()
        for length in range(1, len(content), 997):
            three.db.write_bytes(content[:length])
            try:
                assert three.again().view().rows == rows
                three.touch()
            except MamError as error:
                assert error.exit_code == 65
            three.registry.close()


class InterruptedAfterBegin(sqlite3.Connection):
    """Ctrl-C just after the first statement that begins a transaction."""

    is_armed = True

    def execute(self, statement, *parameters):
        result = super().execute(statement, *parameters)
        if self.is_armed and statement.startswith("BEGIN"):
            self.is_armed = False
            raise KeyboardInterrupt
        return result


@pytest.mark.parametrize("is_write", [False, True])
def test_an_interrupt_just_after_the_begin_leaves_no_transaction(tmp_path, is_write):
    """Otherwise the next read says that the database is damaged."""
    path = str(tmp_path / "state.db")
    connection = sqlite3.connect(path, isolation_level=None, factory=InterruptedAfterBegin)

    def begin():
        return database.transaction(connection, path) if is_write else database.snapshot(connection)

    with pytest.raises(KeyboardInterrupt), begin():
        raise AssertionError("not reached")
    assert not connection.in_transaction
    with begin():
        connection.execute("CREATE TABLE one(x)")
    connection.close()


@pytest.mark.parametrize("is_inner_write", [False, True])
def test_an_inner_transaction_does_not_end_the_outer_one(tmp_path, is_inner_write):
    path = str(tmp_path / "state.db")
    connection = sqlite3.connect(path, isolation_level=None)

    def work():
        connection.execute("CREATE TABLE one(x)")
        inner = (
            database.transaction(connection, f"{path}-inner")
            if is_inner_write
            else database.snapshot(connection)
        )
        with inner:
            raise AssertionError("not reached")

    with pytest.raises(MamError, match="open already"), database.transaction(connection, path):
        work()
    assert connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,), "undone as a whole"
    connection.close()


class TestAfterwards:
    """A long-lived process has one connection: after a failure, the next change must work."""

    def test_after_a_commit_that_failed(self, three):
        connection = three.registry.writer()

        class Failing:
            def __init__(self, real):
                self.real = real

            def execute(self, sql, *arguments):
                if sql == "COMMIT":
                    error = sqlite3.OperationalError("disk I/O error")
                    error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
                    raise error
                return self.real.execute(sql, *arguments)

            def __getattr__(self, name):
                return getattr(self.real, name)

        with pytest.raises(Unavailable), database.transaction(Failing(connection), str(three.db)):
            connection.execute("UPDATE sessions SET status='archived'")
        assert not connection.in_transaction
        assert three.rows()[FIRST]["status"] == "running"
        three.put(FIRST, note="works")

    def test_text_that_is_not_unicode_is_refused(self, store):
        """Arguments and paths from the shell may hold bytes that are not UTF-8."""
        for value in ("\udcff", "a\ud800b"):
            with pytest.raises(Refused):
                store.add(new_row(1, start_command=["claude", value]))
        store.add(new_row(1))
        check_invariants(store)


class TestReadOnly:
    """In a read-only root, reading works and writing raises a clear error."""

    @pytest.fixture
    def locked(self, three):
        """A root that its owner may not write; the user root could write it anyway."""
        three.put(FIRST, note="x")
        three.registry.close()
        folders = [three.root, Path(three.paths.state), three.yaml.parent]
        for path in [*three.root.rglob("*"), three.root]:
            os.chown(path, NOBODY, NOBODY)
        for folder in folders:
            folder.chmod(0o500)
        yield three
        for folder in folders:
            folder.chmod(0o700)

    def test_reading(self, locked):
        assert as_nobody(lambda: len(locked.again().view().rows)) == 3

    @pytest.mark.parametrize("has_index", [True, False])
    def test_what_a_crash_left_in_the_log_is_read_or_asked_for(self, locked, has_index):
        """The reader never returns an older state: it reads the log, or raises ReadOnly."""
        folder = Path(locked.paths.state)
        folder.chmod(0o700)

        def crash() -> None:
            locked.again().commit(
                lambda transaction: transaction.put({**transaction.get(FIRST), "note": "newest"})
            )

        as_nobody(crash)
        assert (folder / "state.db-wal").stat().st_size
        if not has_index:
            (folder / "state.db-shm").unlink()
        folder.chmod(0o500)

        def read() -> str:
            try:
                return locked.again().view().find(FIRST)["note"]
            except ReadOnly as error:
                return error.code

        assert as_nobody(read) == ("newest" if has_index else "read_only")

    def test_whoever_read_it_sees_what_changed_once_it_can_be_written(self, locked):
        def read() -> str:
            reader, writer = locked.again(), Registry(locked.paths, locked.clock)
            reader.view()
            for folder in (locked.root, Path(locked.paths.state), locked.yaml.parent):
                folder.chmod(0o700)
            writer.commit(lambda transaction: transaction.put({**transaction.get(FIRST), "note": "newest"}))
            return reader.view().find(FIRST)["note"]

        assert as_nobody(read) == "newest"

    def test_writing(self, locked):
        def write() -> str:
            try:
                locked.again().change(lambda transaction: None)
            except ReadOnly as error:
                return error.code
            return "written"

        assert as_nobody(write) == "read_only"


class TestUserState:
    @pytest.fixture
    def user_state(self, tmp_path):
        opened = UserState(str(tmp_path / "state" / "mam"), lambda: NOON)
        yield opened
        opened.close()

    def test_private(self, user_state):
        user_state.release("s_1", None)
        assert Path(user_state.folder).stat().st_mode & 0o777 == 0o700
        assert Path(user_state.path).stat().st_mode & 0o777 == 0o600

    def test_nothing_is_made_by_reading(self, user_state):
        assert user_state.roots() == []
        assert not Path(user_state.folder).exists()

    def test_damage_is_named(self, user_state):
        Path(user_state.folder).mkdir(parents=True)
        Path(user_state.path).write_bytes(b"no database at all" * 50)
        with pytest.raises(Damaged):
            user_state.roots()

    def test_a_damaged_file_of_mam_0_1_stops_no_change_and_is_named(self, tmp_path):
        former = tmp_path / "host.db"
        former.write_bytes(b"no database at all" * 50)
        state = UserState(str(tmp_path / "state"), lambda: NOON, str(former))
        try:
            state.release("s_1", None)
            assert str(former) in state.former_problem()
        finally:
            state.close()

    def test_without_a_file_of_mam_0_1_a_later_caller_may_bring_it(self, user_state):
        user_state.release("s_1", None)
        assert user_state.former_problem() is None
        assert user_state._read("SELECT 1 FROM meta WHERE key='former'") == []

    def test_a_damaged_lease_is_named(self, user_state):
        user_state._writer().execute("INSERT INTO leases VALUES('a', 'b', 'r', 's', '{', 1, NULL)")
        with pytest.raises(Damaged):
            user_state.lease("a", "b")


@pytest.mark.parametrize("value", ["{", b"\xff\xfe"])
@pytest.mark.parametrize("column", ["meta.value", "sessions.data", "evidence.data"])
def test_a_record_that_is_no_json_is_named_by_whoever_reads_it(three, column, value):
    table, _, field = column.partition(".")
    three.registry.note(
        lambda transaction: evidence.record(transaction.connection, FIRST, "hook", 1.0, {}, 1.0)
    )
    three.registry.close()
    connection = sqlite3.connect(three.paths.db)
    connection.execute(f"UPDATE {table} SET {field}=?", (value,))
    connection.commit()
    connection.close()
    with pytest.raises(RegistryCorrupt):
        assert three.again().view().rows
        evidence.recorded(three.registry, "hook")


@pytest.mark.parametrize("value", ["{", b"\xff\xfe", "[]"])
@pytest.mark.parametrize("column", ["owner", "data"])
def test_e1_an_intent_that_is_not_readable_is_marked_and_hides_nothing(three, column, value):
    intent = Intent(FIRST, "x", "stop", owner={}, at=1.0, data={})
    three.registry.note(lambda transaction: transaction.intents.put(intent))
    three.registry.close()
    connection = sqlite3.connect(three.paths.db)
    connection.execute(f"UPDATE intents SET {column}=?", (value,))
    connection.commit()
    connection.close()
    view = three.again().view()
    assert len(view.rows) == 3
    assert [bool(found.flaw) for found in view.intents] == [True]


@pytest.mark.parametrize("has_log", [False, True], ids=["without a log", "with a log"])
def test_e6_a_full_disk_without_space_for_the_index_can_be_read(tmp_path, monkeypatch, has_log):
    """SQLite makes the index of the log even to read, if no other process has made it."""
    path = str(tmp_path / "state.db")
    writer = database.connect(path, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS, create=True)
    with database.transaction(writer, path):
        writer.execute("INSERT INTO meta VALUES('file', '\"newest\"')")
    if not has_log:
        writer.close()

    def connect(*_arguments, **_options):
        raise DiskFull("no space for the index")

    monkeypatch.setattr(database, "connect", connect)
    try:
        reader = database.connect_to_read(path, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS)
        assert database.read_meta(reader, path, ["file"]) == {"file": "newest"}
        reader.close()
    finally:
        writer.close()


def test_a_read_only_file_system_is_named_with_its_mount(tmp_path, monkeypatch) -> None:
    """Its owner and mode are right, and say nothing."""
    path = str(tmp_path / "state.db")
    refused = OSError(errno.EACCES, "refused", path)
    assert database.translate_os(refused, path).hint == "check the owner and mode of its folder"
    facts = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda _folder: SimpleNamespace(f_flag=facts.f_flag | os.ST_RDONLY))
    monkeypatch.setattr(os.path, "ismount", lambda folder: folder == str(tmp_path.parent))
    locked = sqlite3.OperationalError("attempt to write a readonly database")
    for error in (
        database.translate_os(OSError(errno.EROFS, "no", path), path),
        database.translate(locked, path),
    ):
        assert isinstance(error, ReadOnly)
        assert error.message.endswith("its file system is mounted read-only (EROFS)")
        assert error.hint == f"mount it for writing, and repeat: mount -o remount,rw {tmp_path.parent}"
