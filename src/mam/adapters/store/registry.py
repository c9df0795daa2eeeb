"""The registry of one root: SQLite is the truth, and people read and edit the YAML file.

A change commits in one transaction and updates the file in a second one. After a crash in between, the file
is older than the database and never newer, and the next command updates it. Several changes that wait for
each other share one update of the file.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from time import monotonic, sleep

from mam.adapters.store import database, schema
from mam.adapters.store.intents import Intents, parse_owner
from mam.adapters.store.root_paths import fingerprint
from mam.adapters.store.root_safety import RootSafety
from mam.adapters.store.rows_and_log import CHANGED_BY, Transaction, choose
from mam.adapters.system import json_text as json
from mam.core.errors import Damaged, MamError, ReadOnly, RegistryBusy, Unavailable
from mam.core.root_state import RootState
from mam.core.session_row import is_running, with_all_fields, with_new_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from mam.adapters.store.checked_copy import CopyReport
    from mam.adapters.store.intents import Intent
    from mam.adapters.store.newest_mam import ThisMam
    from mam.adapters.store.root_identity import RootIdentity
    from mam.adapters.store.root_paths import RootPaths
    from mam.core.registry_hand_edits import StatusEdits
    from mam.core.session_row import Row

    T = TypeVar("T")
    Confirm = Callable[[Row, str], bool | None]

_MOST_LOOKS = 50
# How often the file is read and written again while somebody edits it.
_MOST_WRITES = 10
# A file that is younger than this may be one that mam has just written and records within the next moment.
_YOUNG_SECONDS, _RECORD_SECONDS = 1.0, 0.1
_ID, _NAME = 0, 1
# Whether the database has changes that the file does not show.
_HAS_UNSHOWN = (
    "(EXISTS(SELECT 1 FROM sessions WHERE block IS NULL) OR EXISTS(SELECT 1 FROM forgotten)"
    " OR (SELECT value FROM meta WHERE key='head') IS 'null'"
    " OR coalesce((SELECT value FROM meta WHERE key='identities'), '{}')"
    " != coalesce((SELECT value FROM meta WHERE key='identities_written'), '{}'))"
)
_HALF_DONE = f"""
    SELECT session_id, at, owner FROM intents UNION ALL
    SELECT NULL, NULL, value FROM meta WHERE key='{CHANGED_BY}' AND {_HAS_UNSHOWN}"""  # noqa: S608


class RecordedRows:
    """The rows of the registry at one moment; each is parsed when somebody asks for it.

    Most verbs need one row. To parse all of them costs more than such a verb does otherwise.
    """

    __slots__ = ("_path", "_recorded", "_rows")

    def __init__(self, recorded: list[tuple[str, str, str]], path: str) -> None:
        """Keep ids, names and records, in the order of the file."""
        self._recorded = recorded
        self._rows: list[Row | None] = [None] * len(recorded)
        self._path = path

    def all(self) -> list[Row]:
        """Return every row."""
        missing = [at for at, row in enumerate(self._rows) if row is None]
        for at, row in zip(missing, self._parsed([self._recorded[at][2] for at in missing]), strict=True):
            self._rows[at] = row
        return [row for row in self._rows if row is not None]

    def first(self, column: int, value: str) -> Row | None:
        """Return the first row with this id (column 0) or name (1)."""
        at = next((at for at, record in enumerate(self._recorded) if record[column] == value), None)
        if at is None:
            return None
        if self._rows[at] is None:
            self._rows[at] = self._parsed([self._recorded[at][2]])[0]
        return self._rows[at]

    def _parsed(self, records: list[str]) -> list[Row]:
        try:
            with database.errors(self._path):
                return [with_new_fields(row) for row in json.loads("[" + ",".join(records) + "]")]
        except (AttributeError, TypeError) as error:
            raise database.damaged(self._path, "a session is not readable") from error


class View:
    """The content of the registry at one moment, in memory; making it writes nothing.

    A row is parsed when somebody asks for it: one that is damaged raises Damaged then, and not before.
    """

    __slots__ = ("_recorded", "_rows", "identities", "intents", "listed", "problem", "status_edits")

    def __init__(
        self, rows: list[Row] | RecordedRows, identities: dict[str, Any], intents: list[Intent]
    ) -> None:
        self._recorded = rows if isinstance(rows, RecordedRows) else None
        self._rows = None if isinstance(rows, RecordedRows) else rows
        # Why the file is not part of this view; see `Registry.view_to_show`.
        self.problem: MamError | None = None
        # The statuses that a person wrote into the file: whoever has seen the sessions can judge them.
        self.status_edits: StatusEdits | None = None
        self.identities = identities
        self.intents = intents
        # The conversations in the stores of agents, listed once for all rows that share a store.
        self.listed: dict[Any, list[str]] = {}

    @property
    def rows(self) -> list[Row]:
        """Every session, in the order of the file."""
        if self._rows is None:
            assert self._recorded is not None
            self._rows = self._recorded.all()
        return self._rows

    def by_id(self, session_id: str | None) -> Row | None:
        """Return one session by id; None for the id None, even if a row has no id yet."""
        if session_id is None:
            return None
        if self._rows is None and self._recorded is not None:
            return self._recorded.first(_ID, session_id)
        return next((row for row in self.rows if row.get("id") == session_id), None)

    def find(self, target: str) -> Row:
        """Return the session that a person means by a name or an id."""
        if self._rows is None and self._recorded is not None:
            by_name = self._recorded.first(_NAME, target)
        else:
            by_name = next((row for row in self.rows if row["name"] == target), None)
        return choose(target, self.by_id(target), by_name, lambda: [row["name"] for row in self.rows])


class Registry:
    """Reads and changes of one root's sessions."""

    def __init__(
        self,
        paths: RootPaths,
        clock: Callable[[], float],
        root: RootIdentity | None = None,
        safety: RootSafety | None = None,
        this_mam: ThisMam | None = None,
    ) -> None:
        """Store the paths; open nothing yet. Without `root` every root counts as known."""
        self.paths = paths
        self.this_mam = this_mam
        self.clock = clock
        self.root = root
        self.safety = safety or RootSafety(paths)
        self._is_reporting = False
        self._connection: sqlite3.Connection | None = None
        self._is_writer = False
        self._file: tuple[int, int] | None = None
        # What the files were like of which this connection is a copy.
        self._copied: tuple[object, ...] | None = None
        # What this connection does not show of a database that somebody else may have written.
        self.left_out: CopyReport | None = None
        # Whether this process has committed a change and could not write the file.
        self.has_failed_to_show = False
        # How many connections were closed: the numbers of commits of two connections say nothing together.
        self._closed = 0
        if root is not None:
            root.connect = self._connect_to_read

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._closed += 1
            self._is_writer = False
            self._copied = None
            self.left_out = None

    def reader(self) -> sqlite3.Connection | None:
        """Return a connection for reading, or None without a database."""
        self._close_if_replaced()
        if self._connection is None:
            self.safety.check()
        if self._connection is None and os.path.exists(self.paths.db):
            if self.root is None or self.root.verdict().is_ours:
                return self._connect_to_read()
            self.close()
            if self.root.verdict().state == RootState.MISSING:
                # The file was emptied.
                return None
            from mam.adapters.store import foreign_copy

            self._connection = foreign_copy.connect(self.paths.db)
            self.left_out = self._connection.report
            self._copied = database.copy_stamp(self.paths.db)
            self._file = database.identity(self.paths.db)
        return self._connection

    def _connect_to_read(self) -> sqlite3.Connection:
        """Return a connection to the database itself, which the user state knows or mam has made."""
        if isinstance(self._connection, database.MigratedCopy):
            # Another process may have made or changed the database since it was copied.
            self._close_if_replaced()
        if self._connection is None:
            self._connection = database.connect_to_read(
                self.paths.db, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS
            )
            self._file = database.identity(self.paths.db)
        return self._connection

    def writer(self) -> sqlite3.Connection:
        """Return a connection for writing; create the state's folder and database on first use.

        Raises RootRefused for a root that this user's mam may not change.
        """
        self._close_if_replaced()
        if not self._is_writer:
            connection = self._connect_to_write()
            # Open before closing: the last connection to close copies the log into the database, each time.
            self.close()
            self._connection = connection
            self._file = database.identity(self.paths.db)
            self._is_writer = True
        assert self._connection is not None
        return self._connection

    def _connect_to_write(self) -> sqlite3.Connection:
        self.safety.check()
        root = None if self._is_reporting else self.root
        if root is not None:
            root.check()
        arrival = root.verdict().arrival if root is not None else None
        with database.errors(self.paths.state):
            self.paths.make_state_folder()
            known = root.begin_claim() if root is not None else None
            self.paths.make()
        try:
            connection = database.connect(
                self.paths.db,
                schema.STATE_MIGRATIONS,
                schema.STATE_ADDITIONS,
                create=root is None or known is not None,
                keep_copy=self._keep_copy,
            )
        except (Damaged, Unavailable):
            if root is not None:
                # Somebody may have deleted the state since it was looked at.
                root.forget_verdict()
                root.check()
            raise
        if root is not None and known is not None and arrival is not None:
            try:
                root.finish_claim(connection, known, arrival)
            except BaseException:
                connection.close()
                raise
        return connection

    def _keep_copy(self, connection: sqlite3.Connection, schema_number: str) -> None:
        """Keep a copy of the database before its schema changes; nothing without a user state."""
        if self.root is None:
            return
        from mam.adapters.store import backup_file
        from mam.core.backup_rotation import MIGRATION

        root_id, now = self.root.verdict().id, self.clock()
        folder = backup_file.folder_of(self.root.user_state.folder, root_id, self.paths.state)
        path = backup_file.new_path(folder, MIGRATION, now, schema_number=schema_number)
        facts = backup_file.facts_of(self.paths, root_id, now, MIGRATION)
        # A damaged database is copied as well: without a copy nothing could be changed any more.
        backup_file.write(connection, path, facts, is_checked=False)

    @contextmanager
    def reporting(self) -> Iterator[None]:
        """Let one thing be recorded in a root that may not be changed otherwise.

        That is a report on a job, which its token proves and which runs nothing, or a take-over.
        """
        self._is_reporting = True
        try:
            yield
        finally:
            self._is_reporting = False
            if self.root is not None and self.root.refusal() is not None:
                self.close()

    def ensure_exists(self) -> None:
        """Create the state's folder and database if they do not exist yet."""
        self.writer()

    def _close_if_replaced(self) -> None:
        """Close a database that was deleted or replaced, or whose connection does not show changes."""
        if self._connection is None:
            return
        if self._copied is not None:
            is_old = database.copy_stamp(self.paths.db) != self._copied
        elif isinstance(self._connection, database.MigratedCopy):
            with database.errors(self.paths.db):
                is_old = self._connection.is_old()
        else:
            is_old = isinstance(self._connection, database.ImmutableConnection)
        if is_old or database.identity(self.paths.db) != self._file:
            self.close()

    def view(self) -> View:
        """Return the current registry, including an edit of the file that mam has not recorded yet."""
        connection = self.reader()
        if connection is None:
            return self._view_of_file([])
        wait_until = monotonic() + _RECORD_SECONDS
        for _ in range(_MOST_LOOKS):
            before = database.data_version(connection, self.paths.db)
            try:
                while (view := self._look(connection, monotonic() < wait_until)) is None:
                    sleep(0.001)
                return view
            except Damaged:
                # Another process may have committed and written the file since this one read the database.
                if database.data_version(connection, self.paths.db) == before:
                    raise
        view = self._look(connection, False)
        assert view is not None
        return view

    def view_to_show(self) -> View:
        """Return the current registry for a verb that only looks.

        If the file cannot be read or has an edit that mam refuses, this is what the database holds, with the
        problem. Without anything in the database it raises the problem.
        """
        try:
            return self.view()
        except (Damaged, Unavailable) as error:
            connection = self.reader()
            if connection is None:
                raise
            view = self._look(connection, False, with_file=False)
            if view is None:
                raise
            view.problem = error
            return view

    def _look(self, connection: sqlite3.Connection, may_wait: bool, *, with_file: bool = True) -> View | None:
        """Return the current registry; None if the file is newer and its record may follow in a moment.

        Without the file it is what the database holds; None if no file was ever taken in.
        """
        with database.errors(self.paths.db), database.snapshot(connection):
            found = connection.execute("SELECT id, name, data FROM sessions ORDER BY position").fetchall()
            recorded = connection.execute(
                "SELECT key, value FROM meta WHERE key IN ('file', 'identities')"
            ).fetchall()
            intents = Intents(connection).all()
            meta = {key: json.loads(value) for key, value in recorded}
            is_edited = self._is_edited(meta.get("file"))
            if is_edited and may_wait and self._is_young():
                return None
            recorded_rows = RecordedRows(found, self.paths.db)
            rows: RecordedRows | list[Row] = recorded_rows
            is_recorded = bool(found) or "file" in meta
            if not with_file and not is_recorded:
                return None
            edits = None
            if is_edited and with_file:
                if not is_recorded:
                    return self._view_of_file(intents)
                rows, edits = self._preview(connection, recorded_rows.all())
        view = View(rows, meta.get("identities") or {}, intents)
        view.status_edits = edits
        return view

    def change(self, work: Callable[[Transaction], T], confirm: Confirm | None = None) -> T:
        """Run work under the write lock, commit, and update the file."""
        result, transaction = self._commit(work, confirm)
        try:
            self.show(confirm)
        finally:
            transaction.follow_up()
        return result

    def commit(self, work: Callable[[Transaction], T], confirm: Confirm | None = None) -> T:
        """Run work under the write lock and commit; the next `show` updates the file.

        This records a person's edit first. An edit that mam must refuse stops the change before it begins.
        """
        result, transaction = self._commit(work, confirm)
        transaction.follow_up()
        return result

    def _commit(self, work: Callable[[Transaction], T], confirm: Confirm | None) -> tuple[T, Transaction]:
        with self._transaction() as transaction:
            self._take_in(transaction, confirm)
            result = work(transaction)
        return result, transaction

    @contextmanager
    def _transaction(self) -> Iterator[Transaction]:
        """Hold the write lock. After an error of the disk, the next change opens the database again.

        If SQLite cannot open a file for writing, it opens it for reading only and never tries again.
        """
        try:
            with ExitStack() as stack:
                connection = self._lock(stack)
                transaction = Transaction(
                    connection, self.clock(), lambda: self._is_edited(transaction.meta("file"))
                )
                if self.root is not None and not self._is_reporting:
                    self.root.check_place(transaction)
                    if self.this_mam is not None:
                        self.this_mam.note(transaction)
                yield transaction
        except Unavailable:
            self.close()
            raise

    def _lock(self, stack: ExitStack) -> sqlite3.Connection:
        """Begin a transaction, which ends with the stack; return its connection.

        A restore replaces the database while others wait for the write lock of the former one. What they
        record there would be lost.
        """
        while True:
            was_open = self._is_writer
            connection = self.writer()
            stack.enter_context(database.transaction(connection, self.paths.db))
            if was_open and not self._can_write(connection):
                # SQLite opens for reading what it cannot open for writing, and says nothing. The reason may
                # be gone by now.
                stack.close()
                self.close()
                continue
            if database.identity(self.paths.db) == self._file:
                return connection
            stack.close()
            self.close()

    def _can_write(self, connection: sqlite3.Connection) -> bool:
        """Tell whether a connection was opened for writing; a transaction begins without that, too."""
        try:
            with database.errors(self.paths.db):
                connection.execute("DELETE FROM meta WHERE 0")
        except ReadOnly:
            return False
        return True

    def show(self, confirm: Confirm | None = None) -> None:
        """Update the file if it is older than the database; an error says that the change is recorded."""
        connection = self.writer()
        try:
            if self._is_behind(connection):
                self.project(confirm)
            self.has_failed_to_show = False
        except MamError as error:
            self.has_failed_to_show = True
            error.recorded, error.retryable = True, False
            more = error.hint if isinstance(error, Damaged) else "the next command writes the file"
            error.hint = f"what you asked for is recorded; {more}"
            raise

    def warm_up(self) -> None:
        """Import what writing the file needs, while the caller waits for something else."""
        from mam.adapters.store.yaml import projection  # noqa: F401

    def _is_behind(self, connection: sqlite3.Connection) -> bool:
        rows, file = self._unshown(connection)
        with database.errors(self.paths.db):
            return rows or file is None or fingerprint(self.paths.yaml) != json.loads(file)

    def _unshown(self, connection: sqlite3.Connection) -> tuple[bool, str | None]:
        """Return whether the database has changes that the file does not show, and the recorded file."""
        with database.errors(self.paths.db):
            rows, file = connection.execute(
                f"SELECT {_HAS_UNSHOWN}, (SELECT value FROM meta WHERE key='file')"  # noqa: S608
            ).fetchone()
        return bool(rows), file

    def has_unshown_changes(self) -> bool:
        """Tell whether a change is recorded that the file does not show: its process may have died since."""
        connection = self.reader()
        return connection is not None and self._unshown(connection)[0]

    def half_done(self) -> list[tuple[str | None, float | None, Any]]:
        """Return session, time and owner of each claim, and `(None, None, owner)` of unshown changes.

        One query, which every listing makes. A database that only a migration makes readable has none.
        """
        connection = self.reader()
        if connection is None or isinstance(connection, database.MigratedCopy):
            return []
        with database.errors(self.paths.db):
            found = connection.execute(_HALF_DONE).fetchall()
        return [(session_id, at, parse_owner(owner)) for session_id, at, owner in found]

    def note(self, work: Callable[[Transaction], T]) -> T:
        """Run work whose result the file need not show at once: intents, evidence, messages, log."""
        with self._transaction() as transaction:
            result = work(transaction)
        transaction.follow_up()
        return result

    def note_without_migration(self, work: Callable[[Transaction], T]) -> T | None:
        """Do as `note` does, for a verb that only reads; None in a database that a migration would change."""
        connection = self.reader()
        if connection is None or isinstance(connection, database.MigratedCopy):
            return None
        return self.note(work)

    def shrink(self, least_free: int, most_used: int) -> bool:
        """Shrink the database file if so much of it is free, and if what is used is copied quickly."""
        connection = self.writer()
        free, used = database.free_bytes(connection, self.paths.db)
        if free < least_free or free < used or used > most_used:
            return False
        database.vacuum(connection, self.paths.db)
        return True

    def project(self, confirm: Confirm | None = None) -> None:
        """Update the file from the database.

        An edit is committed before its file is replaced. If the process died in between, nobody could tell
        in the new file what mam wrote when it took the edit in from what a person wrote.
        """
        from mam.adapters.store.yaml import projection

        for _ in range(_MOST_WRITES):
            with self._transaction() as transaction:
                recorded = transaction.meta("file")
                # Fingerprint first: a later edit must not be mistaken for the file that was read.
                before = fingerprint(self.paths.yaml)
                self._take_in(transaction, confirm)
                if transaction.meta("file") == recorded and projection.write(
                    transaction, self.paths, before, lambda: self._is_behind(transaction.connection)
                ):
                    return
        raise RegistryBusy(f"{self.paths.yaml} is being edited right now", hint="repeat the command")

    def peek(self, read: Callable[[Transaction], T], default: T) -> T:
        """Run a read of other tables; `default` without a database, or with the database of an older mam."""
        connection = self.reader()
        if connection is None:
            return default
        with database.errors(self.paths.db), database.snapshot(connection):
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            is_current = version == len(schema.STATE_MIGRATIONS)
            if is_current and isinstance(connection, database.ImmutableConnection):
                is_current = database.has_additions(connection, schema.STATE_ADDITIONS)
            return read(Transaction(connection, self.clock())) if is_current else default

    def commit_number(self) -> int | None:
        """Return a number that changes when another process commits; None without a database."""
        connection = self.reader()
        if connection is None:
            return None
        return (self._closed << 32) + database.data_version(connection, self.paths.db)

    def servers(self) -> list[str]:
        """Return the tmux servers of sessions that run or ran, without reading the sessions."""
        connection = self.reader()
        if connection is None:
            return []
        with database.errors(self.paths.db):
            row = connection.execute("SELECT value FROM meta WHERE key='servers'").fetchone()
            return json.loads(row[0]) if row else []

    def running_rows(self) -> list[Row]:
        """Return the running sessions by the database, also beside a file that cannot be read.

        Without a database they come from the file, if that can be read.
        """
        connection = self.reader()
        if connection is None:
            try:
                return [row for row in self._view_of_file([]).rows if is_running(row)]
            except (Damaged, Unavailable):
                return []
        with database.errors(self.paths.db):
            rows = connection.execute("SELECT data FROM sessions WHERE status='running'").fetchall()
            documents = json.loads("[" + ",".join([data for (data,) in rows]) + "]")
            return [with_new_fields(row) for row in documents]

    def is_edited(self) -> bool:
        """Tell whether the file differs from the one that mam wrote last."""
        connection = self.reader()
        with database.errors(self.paths.db):
            row = connection and connection.execute("SELECT value FROM meta WHERE key='file'").fetchone()
            recorded = json.loads(row[0]) if row else None
        return self._is_edited(recorded)

    def _is_edited(self, recorded: list[int] | None) -> bool:
        return fingerprint(self.paths.yaml) not in (None, recorded)

    def _is_young(self) -> bool:
        file = fingerprint(self.paths.yaml)
        return file is not None and abs(self.clock() - file[2] / 1e9) < _YOUNG_SECONDS

    def _take_in(self, transaction: Transaction, confirm: Confirm | None) -> None:
        if not self._is_edited(transaction.meta("file")):
            return
        from mam.adapters.store.yaml import intake

        intake.take_in(transaction, self.paths, confirm)

    def _preview(
        self, connection: sqlite3.Connection, rows: list[Row]
    ) -> tuple[list[Row], StatusEdits | None]:
        from mam.adapters.store.yaml import intake

        return intake.preview(connection, self.paths, rows, self.clock())

    def _view_of_file(self, intents: list[Intent]) -> View:
        """Return the content of the file, if there is no database yet that has recorded it."""
        if fingerprint(self.paths.yaml) is None:
            return View([], {}, intents)
        from mam.adapters.store.yaml import intake

        content = intake.read_file(self.paths, is_recorded=False)
        if content is None:
            return View([], {}, intents)
        return View([with_all_fields(row) for row in content.rows], content.identities, intents)
