"""Opens an SQLite file durably, migrates it, holds its write lock, and translates its errors into mam's."""

from __future__ import annotations

# The module in C, of which the package sqlite3 consists. The package adds converters of dates, and importing
# those takes a millisecond of each command.
import _sqlite3 as sqlite3
import os
import time
from contextlib import ExitStack, contextmanager

from mam.adapters.system import json_text as json
from mam.core.errors import (
    DiskFull,
    MamError,
    ReadOnly,
    RegistryBusy,
    RegistryCorrupt,
    SchemaTooNew,
    Unavailable,
    Unwritable,
    Usage,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    # A table, the column that shows whether the addition was made, and the statements that make it.
    Addition = tuple[str, str, str]

# Keys of the table `meta`: the id of the root, how many additions the schema has, and the newest mam that
# changed the database.
ROOT_ID, ADDITIONS, NEWEST = "root_id", "additions", "newest_mam"
BUSY_SECONDS = 10.0
_STEP = 0.002
# How SQLite begins the error of a query on a database that lacks a table.
_NO_TABLE = "no such table"


def connect(
    path: str,
    migrations: Sequence[str],
    additions: Sequence[Addition] = (),
    *,
    create: bool,
    with_wal: bool = True,
    keep_copy: Callable[[sqlite3.Connection, str], None] | None = None,
) -> sqlite3.Connection:
    """Open a database and migrate it to the newest schema; raise a MamError for each possible failure.

    Without `create` there must be one already: a database that was just deleted is not made anew. With a
    write-ahead log readers and writers do not wait for each other. Without it a reader makes no file.
    `keep_copy` gets a database of an older schema, and the number of that, before it is migrated. If it
    fails, nothing is migrated.
    """
    with errors(path):
        if create:
            _create_private(path)
        elif not os.stat(path).st_size:
            raise damaged(path, "it is empty")
        connection, number = _open(path, len(migrations), len(additions))
        try:
            if not create and number == (0, 0):
                raise damaged(path, "it is empty")
            connection.execute("PRAGMA synchronous=FULL")
            # What is deleted is overwritten, or each copy would have it. Not every build does so by itself.
            connection.execute("PRAGMA secure_delete=ON")
            if not _is_current(number, migrations, additions):
                with _queued(path):
                    # Another process may have migrated it, while this one waited.
                    number = schema_number(connection)
                    is_old = not _is_current(number, migrations, additions)
                    if is_old and number[0] and keep_copy is not None:
                        keep_copy(connection, f"{number[0]}.{number[1]}")
                    _migrate(connection, migrations, additions, path, with_wal=with_wal)
        except BaseException:
            connection.close()
            raise
        return connection


def _open(path: str, major: int, minor: int) -> tuple[sqlite3.Connection, tuple[int, int]]:
    """Open a database as it is, with its schema; raise SchemaTooNew if mam does not know that."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        number = schema_number(connection)
        if number[0] > major:
            raise too_new(connection, path, f"{major}.{minor}")
        connection.execute("PRAGMA trusted_schema=OFF")
    except BaseException:
        connection.close()
        raise
    return connection, number


def schema_number(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of migrations that a database has, and the number of additions.

    A database of mam 0.1 has no number of additions, which is 0 then.
    """
    major = int(connection.execute("PRAGMA user_version").fetchone()[0])
    try:
        row = connection.execute("SELECT value FROM meta WHERE key=?", (ADDITIONS,)).fetchone()
    except sqlite3.OperationalError as error:
        if _NO_TABLE not in str(error):
            raise
        return major, 0
    # In a file of somebody else it may be anything.
    minor = json.loads(row[0]) if row and isinstance(row[0], str) else 0
    return major, minor if isinstance(minor, int) else 0


def _is_current(number: tuple[int, int], migrations: Sequence[str], additions: Sequence[Addition]) -> bool:
    """Tell whether a schema has all that this mam knows. More additions than that do not matter."""
    return number[0] == len(migrations) and number[1] >= len(additions)


def too_new(connection: sqlite3.Connection, path: str, known: str) -> SchemaTooNew:
    """Return the error for a database of a schema that this mam does not know: which mam can go on."""
    import sys

    from mam.adapters.system import program_lookup

    major, minor = schema_number(connection)
    newest: object = None
    try:
        newest = read_meta(connection, path, (NEWEST,)).get(NEWEST)
    except MamError:
        # The newer schema may have another table of that name.
        newest = None
    version = newest.get("version") if isinstance(newest, dict) else None
    writer = f"mam {version[:40]}" if isinstance(version, str) and version.isprintable() else "a newer mam"
    on_path = program_lookup.which("mam", os.environ.get("PATH", os.defpath))
    return SchemaTooNew(
        f"{path} was written by {writer} (schema {major}.{minor}, this one knows {known})",
        hint=f"use the newer mam; this one is {os.path.dirname(sys.executable)}/mam, and "
        + (f"{on_path} is on PATH" if on_path else "none is on PATH"),
    )


class ImmutableConnection(sqlite3.Connection):
    """A connection that never shows changes since it was opened: to a read-only folder, or to a copy."""


class MigratedCopy(ImmutableConnection):
    """A copy in memory of a database of an older schema, migrated for reading. The file stays as it is."""

    source: sqlite3.Connection
    seen: int

    def is_old(self) -> bool:
        """Tell whether the database has changed since it was copied, or whether nobody can tell."""
        if isinstance(self.source, ImmutableConnection):
            return True
        return bool(self.source.execute("PRAGMA data_version").fetchone()[0] != self.seen)

    def close(self) -> None:
        """Close the copy and the database."""
        super().close()
        self.source.close()


# A folder for a moment. What a killed process leaves is removed by whoever next makes a copy of a state.
COPY_PREFIX = "mam-copy-"
# A larger database of somebody else is not read into memory.
_LARGEST_COPY = 256 << 20
# A query on such a copy ends after so many steps: its tables may be views without an end.
_STEPS_BETWEEN, _MOST_STEPS = 100_000, 200_000_000


def connect_to_copy(path: str) -> sqlite3.Connection:
    """Open a copy in memory of a database that somebody else may have written; nothing beside it changes.

    SQLite would write beside the file even to read it, and wait on a FIFO.
    """
    import shutil
    import tempfile

    with errors(path):
        folder = tempfile.mkdtemp(prefix=COPY_PREFIX)
        try:
            name = os.path.join(folder, "copy.db")
            for suffix in ("", "-wal"):
                copy_regular(path + suffix, name + suffix, is_required=not suffix)
            source = sqlite3.connect(name, isolation_level=None)
            try:
                source.execute("PRAGMA trusted_schema=OFF")
                connection = sqlite3.connect(
                    ":memory:", isolation_level=None, check_same_thread=False, factory=ImmutableConnection
                )
                source.backup(connection)
            finally:
                source.close()
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        _trust_nothing(connection)
        return connection


def connect_to_private_copy(path: str) -> sqlite3.Connection:
    """Open a file in a folder of mam's own, of which somebody else may have written the content.

    SQLite may write beside it. It may be of any size, because it is not read into memory.
    """
    with errors(path):
        uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?mode=rw"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        _trust_nothing(connection)
        return connection


def _trust_nothing(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA query_only=ON")
    steps = iter(range(_MOST_STEPS // _STEPS_BETWEEN))
    connection.set_progress_handler(lambda: next(steps, None) is None, _STEPS_BETWEEN)


def copy_stamp(path: str) -> tuple[object, ...]:
    """Return what changes when a database changes of which a copy is read."""
    stamps: list[object] = []
    for name in (path, f"{path}-wal"):
        try:
            facts = os.lstat(name)
        except OSError:
            stamps.append(None)
        else:
            stamps.append((facts.st_ino, facts.st_size, facts.st_mtime_ns))
    return tuple(stamps)


def copy_regular(
    source: str, target: str, *, is_required: bool, largest: int = _LARGEST_COPY, flushed: bool = False
) -> None:
    """Copy a regular file into a new one; refuse a link, a FIFO and everything else that is not one."""
    import shutil
    import stat

    try:
        handle = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        if is_required:
            raise
        return
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise damaged(source, "it is not a regular file")
        if facts.st_size > largest:
            raise damaged(source, "it is too large to be read")
        with open(target, "xb", opener=_open_private) as copy:
            shutil.copyfileobj(file, copy)
            if flushed:
                copy.flush()
                os.fsync(copy.fileno())


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def read_meta(connection: sqlite3.Connection, path: str, keys: Sequence[str]) -> dict[str, object]:
    """Return some values of the table `meta`; nothing of a database that has no such table yet."""
    with errors(path):
        marks = ", ".join("?" * len(keys))
        try:
            rows = connection.execute(f"SELECT key, value FROM meta WHERE key IN ({marks})", tuple(keys))  # noqa: S608
        except sqlite3.OperationalError as error:
            if _NO_TABLE not in str(error):
                raise
            return {}
        values = {}
        for key, value in rows:
            if not isinstance(value, str):
                raise damaged(path, f"the record of {key} is not readable")
            values[key] = json.loads(value)
        return values


def has_additions(connection: sqlite3.Connection, additions: Sequence[Addition]) -> bool:
    """Tell whether a database has every column that was added without a new version of the schema."""
    return not list(_missing(connection, additions))


def _missing(connection: sqlite3.Connection, additions: Sequence[Addition]) -> Iterator[str]:
    """Yield the statements of the additions that a database lacks."""
    query = "SELECT 1 FROM pragma_table_info(?) WHERE name=?"
    for table, column, statements in additions:
        if connection.execute(query, (table, column)).fetchone() is None:
            yield statements


def connect_to_read(
    path: str, migrations: Sequence[str], additions: Sequence[Addition] = ()
) -> sqlite3.Connection:
    """Open a database for reading, also in a folder that this user may not write, and on a full disk.

    Of an older schema a copy in memory is migrated, and the file stays as it is.
    """
    with errors(path):
        try:
            with errors(path):
                connection, number = _open(path, len(migrations), len(additions))
        except Unwritable as error:
            if not (os.path.exists(f"{path}-wal") and os.path.getsize(f"{path}-wal")):
                connection = _connect_immutable(path)
            elif isinstance(error, ReadOnly):
                # The newest changes are in the log, and SQLite cannot read the log without writing beside it.
                raise
            else:
                connection = connect_to_copy(path)
            number = None
        try:
            if _is_current(number or schema_number(connection), migrations, additions):
                return connection
            return _migrated_copy(connection, migrations, additions, path)
        except BaseException:
            connection.close()
            raise


def _migrated_copy(
    source: sqlite3.Connection, migrations: Sequence[str], additions: Sequence[Addition], path: str
) -> MigratedCopy:
    # Before the copy: a commit that comes while it is made may be in it or not.
    seen = int(source.execute("PRAGMA data_version").fetchone()[0])
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=MigratedCopy)
    copy.source, copy.seen = source, seen
    source.backup(copy)
    copy.execute("PRAGMA trusted_schema=OFF")
    _migrate(copy, migrations, additions, path, with_wal=False)
    copy.execute("PRAGMA query_only=ON")
    return copy


def _connect_immutable(path: str) -> sqlite3.Connection:
    with errors(path):
        uri = "file:" + path.replace("%", "%25").replace("?", "%3f").replace("#", "%23") + "?immutable=1"
        return sqlite3.connect(
            uri, uri=True, isolation_level=None, check_same_thread=False, factory=ImmutableConnection
        )


def identity(path: str) -> tuple[int, int] | None:
    """Return device and inode, which differ for another file of the same name; None without a file."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_dev, facts.st_ino


def data_version(connection: sqlite3.Connection, path: str) -> int:
    """Return a number that changes whenever another connection commits."""
    with errors(path):
        return int(connection.execute("PRAGMA data_version").fetchone()[0])


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """Read several things at the same moment."""
    _refuse_nested(connection)
    try:
        # Inside the `try`, because Ctrl-C may interrupt just after this statement.
        connection.execute("BEGIN")
        yield
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


@contextmanager
def transaction(connection: sqlite3.Connection, path: str) -> Iterator[None]:
    """Hold the write lock from the first read to the commit."""
    with errors(path), _queued(path):
        _refuse_nested(connection)
        try:
            _begin(connection, path)
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def unchanged(path: str) -> Iterator[None]:
    """Keep everybody else from writing a database while its file is replaced; write nothing.

    A damaged database may have no write lock. Then the queue alone keeps others from writing.
    """
    with _queued(path):
        connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)
        try:
            try:
                _begin(connection, path)
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                    raise _busy(path) from None
            yield
        finally:
            connection.close()


def free_bytes(connection: sqlite3.Connection, path: str) -> tuple[int, int]:
    """Return how many bytes of a database are free, and how many are used."""
    with errors(path):
        size, free, count = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0])
            for name in ("page_size", "freelist_count", "page_count")
        )
    return size * free, size * (count - free)


def vacuum(connection: sqlite3.Connection, path: str) -> None:
    """Give the free pages of a database back to the disk. Nobody can write meanwhile."""
    with errors(path), _queued(path):
        _refuse_nested(connection)
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _refuse_nested(connection: sqlite3.Connection) -> None:
    """Keep the end of an inner transaction from ending the outer one."""
    if connection.in_transaction:
        raise sqlite3.ProgrammingError("a transaction is open already")


@contextmanager
def _queued(path: str) -> Iterator[None]:
    """Wait in the queue for the write lock of a database; raise RegistryBusy if the queue does not move.

    The queue only keeps the order. Without its file, SQLite's own lock still allows one writer at a time,
    and SQLite's error describes better what is wrong with the folder.
    """
    from mam.adapters.store import fifo_lock

    with ExitStack() as stack:
        try:
            stack.enter_context(fifo_lock.hold(f"{path}.queue", BUSY_SECONDS))
        except fifo_lock.QueueStuck:
            raise _busy(path) from None
        except OSError:
            pass
        yield


def _progress(path: str) -> object:
    """Return a value that changes with every commit."""
    try:
        facts = os.stat(f"{path}-wal")
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


def _begin(connection: sqlite3.Connection, path: str) -> None:
    """Take the write lock, which an older mam without the queue may hold.

    SQLite's own wait tries ten times a second, and among many writers it can miss the lock for long.
    """
    progress, since = _progress(path), time.monotonic()
    connection.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if (newer := _progress(path)) != progress:
                    progress, since = newer, time.monotonic()
                elif time.monotonic() - since > BUSY_SECONDS:
                    raise
            time.sleep(_STEP)
    finally:
        connection.execute(f"PRAGMA busy_timeout={int(BUSY_SECONDS * 1000)}")


@contextmanager
def errors(path: str) -> Iterator[None]:
    """Turn errors of SQLite and of the file system into errors of mam."""
    try:
        yield
    except sqlite3.Error as error:
        raise translate(error, path) from error
    except OSError as error:
        raise translate_os(error, path) from error
    except UnicodeDecodeError as error:
        raise damaged(path, "a record is not readable") from error
    except RecursionError as error:
        raise damaged(path, "a record is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise Usage("text that is not valid Unicode cannot be recorded", hint="write it in UTF-8") from error
    except ValueError as error:
        from json import JSONDecodeError

        if isinstance(error, JSONDecodeError):
            raise damaged(path, f"a record is not readable ({error.msg})") from error
        # The only other one of a document: Python reads numbers of at most 4300 digits.
        if "integer string conversion" not in str(error):
            raise
        raise damaged(path, "a record has a number of too many digits") from error


def translate(error: sqlite3.Error, path: str) -> MamError:
    """Return mam's error for an error of SQLite."""
    text = str(error)
    code = getattr(error, "sqlite_errorname", None) or ""
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")) or "locked" in text:
        return _busy(path)
    # The index of the log is a file too, and the first thing that SQLite enlarges.
    if code.startswith(("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")) or "disk is full" in text:
        return DiskFull(f"no space left to write {path}", hint="free some space and repeat the command")
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")) or "readonly" in text:
        return _read_only(path, f"{path} cannot be opened for writing")
    if code.startswith("SQLITE_IOERR"):
        return Unwritable(f"{path}: {text}", hint="check the disk; mam doctor says more")
    if isinstance(error, sqlite3.DatabaseError) and code.startswith(
        ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR")
    ):
        return damaged(path, text)
    if not code and "decode" in text:
        return damaged(path, "a record is not readable")
    return Unavailable(f"{path}: {text}")


def _busy(path: str) -> RegistryBusy:
    return RegistryBusy(f"{path} is held by another process", hint="repeat the command")


def damaged(path: str, reason: str) -> RegistryCorrupt:
    """Return the error for a database whose content cannot be used."""
    hint = f"move it away: mv {path} {path}.broken"
    if os.path.basename(path) == "state.db":
        hint = "mam restore brings back what it still holds, and the rest from the newest copy"
    return RegistryCorrupt(f"{path} is damaged: {reason}", hint=hint)


def translate_os(error: OSError, path: str) -> MamError:
    """Return mam's error for an error of the file system."""
    import errno

    name = error.filename or path
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"no space left to write {name}", hint="free some space and repeat the command")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return _read_only(str(name), f"{name} cannot be written or read")
    kind = Unwritable if error.errno == errno.EIO else Unavailable
    return kind(f"{name}: {error.strerror or error}", hint="look at that folder; mam doctor says more")


def _read_only(path: str, problem: str) -> ReadOnly:
    way = way_to_mount(path)
    if way is None:
        return ReadOnly(problem, hint="check the owner and mode of its folder")
    return ReadOnly(f"{problem}: its file system is mounted read-only (EROFS)", hint=way)


def way_to_mount(path: str) -> str | None:
    """Return how the file system of a path becomes writable; None if it is not mounted read-only."""
    folder = os.path.realpath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        if not os.statvfs(folder).f_flag & os.ST_RDONLY:
            return None
    except OSError:
        return None
    from shlex import quote

    while not os.path.ismount(folder) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    return f"mount it for writing, and repeat: mount -o remount,rw {quote(folder)}"


def _is_foreign(connection: sqlite3.Connection) -> bool:
    """Tell whether a database without a schema version has tables, which another program made then."""
    facts = connection.execute(
        "SELECT (SELECT user_version FROM pragma_user_version), EXISTS(SELECT 1 FROM sqlite_master)"
    ).fetchone()
    return bool(facts[0] == 0 and facts[1])


def _create_private(path: str) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        if os.path.islink(path):
            raise ReadOnly(f"{path} is a symbolic link", hint="move it away") from None


def _enable_wal(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log.

    Two connections that wait in SQLite for this block each other, so each gives up at once and tries again.
    """
    from mam.adapters.system.deadline import Deadline

    deadline = Deadline(BUSY_SECONDS, clock=time.monotonic)
    connection.execute("PRAGMA busy_timeout=0")
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or not deadline.pause(_STEP):
                raise
    connection.execute(f"PRAGMA busy_timeout={BUSY_SECONDS * 1000:.0f}")


def _migrate(
    connection: sqlite3.Connection,
    migrations: Sequence[str],
    additions: Sequence[Addition],
    path: str,
    *,
    with_wal: bool,
) -> None:
    if _is_foreign(connection):
        raise damaged(path, "it is not a database of mam")
    if with_wal:
        _enable_wal(connection)
    try:
        connection.execute("BEGIN IMMEDIATE")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        for number in range(version, len(migrations)):
            _execute(connection, migrations[number])
            connection.execute(f"PRAGMA user_version={number + 1:d}")
        if additions and version < len(migrations):
            # It names a mam that does not know this schema. The first change names this one.
            connection.execute("DELETE FROM meta WHERE key=?", (NEWEST,))
        for statements in list(_missing(connection, additions)):
            _execute(connection, statements)
        if additions and schema_number(connection)[1] < len(additions):
            connection.execute("INSERT OR REPLACE INTO meta VALUES(?, ?)", (ADDITIONS, f"{len(additions):d}"))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _execute(connection: sqlite3.Connection, statements: str) -> None:
    for statement in statements.split(";\n"):
        if statement.strip():
            connection.execute(statement)
