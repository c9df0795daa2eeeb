"""The registry of one root: SQLite is the truth, the YAML file is what people read and edit.

A change commits in one transaction and then brings the file up to date in a second one, so
a crash in between leaves the file behind and never ahead. Whoever comes next writes what is
missing; several changes that wait for each other share one writing of the file.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from time import monotonic, sleep

from mam.adapters.store import database, schema
from mam.adapters.store.intents import Intents
from mam.adapters.store.root_paths import fingerprint
from mam.adapters.store.transaction import Transaction, choose, not_found
from mam.core.errors import Damaged, MamError, Unavailable
from mam.core.session_row import settled, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from typing import Any, TypeVar

    from mam.adapters.store.intents import Intent
    from mam.adapters.store.root_paths import RootPaths
    from mam.core.session_row import Row

    T = TypeVar("T")
    Confirm = Callable[[Row, str], bool | None]

_MOST_LOOKS = 50
# A file that is younger than this and not recorded may be a change of ours, whose record follows so soon.
_YOUNG_SECONDS, _RECORD_SECONDS = 1.0, 0.1


class View:
    """What the registry says, settled in memory: nothing was written to make it."""

    __slots__ = ("identities", "intents", "listed", "rows")

    def __init__(self, rows: list[Row], identities: dict[str, Any], intents: list[Intent]) -> None:
        self.rows = rows
        self.identities = identities
        self.intents = intents
        # What the stores of agents were found to hold, looked up once for all rows that share one.
        self.listed: dict[Any, list[str]] = {}

    def by_id(self, session_id: str | None) -> Row | None:
        """Return one session by id; None has no session, also where a row has no id yet."""
        if session_id is None:
            return None
        return next((row for row in self.rows if row.get("id") == session_id), None)

    def find(self, target: str) -> Row:
        """Return the session that a person means by a name or an id."""
        by_name = next((row for row in self.rows if row["name"] == target), None)
        return choose(target, self.by_id(target), by_name, lambda: [row["name"] for row in self.rows])


class Registry:
    """Reads and changes of one root's sessions."""

    def __init__(self, place: RootPaths, clock: Callable[[], float]) -> None:
        """Nothing is opened before it is needed."""
        self.place = place
        self.clock = clock
        self._connection: sqlite3.Connection | None = None
        self._is_writer = False
        self._file: tuple[int, int] | None = None

    def close(self) -> None:
        """Let go of the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._is_writer = False

    def reader(self) -> sqlite3.Connection | None:
        """Return a connection for reading, or None where no database is."""
        self._drop_lost()
        if self._connection is None and os.path.exists(self.place.db):
            self.place.check()
            self._connection = database.connect_to_read(self.place.db, schema.STATE_MIGRATIONS)
            self._file = database.identity(self.place.db)
        return self._connection

    def writer(self) -> sqlite3.Connection:
        """Return a connection for writing; makes the state's folder and database on first use."""
        self._drop_lost()
        if not self._is_writer:
            with database.errors(self.place.state):
                self.place.make()
            connection = database.connect(self.place.db, schema.STATE_MIGRATIONS, create=True)
            # In this order: the last one to close would fold the log into the database, and so on each call.
            self.close()
            self._connection = connection
            self._file = database.identity(self.place.db)
            self._is_writer = True
        assert self._connection is not None
        return self._connection

    def _drop_lost(self) -> None:
        """Let go of a database that was deleted or replaced, or would not show what changed since."""
        if self._connection is not None and (
            isinstance(self._connection, database.Still) or database.identity(self.place.db) != self._file
        ):
            self.close()

    def view(self) -> View:
        """Return the registry as it stands, a person's pending edit included."""
        connection = self.reader()
        if connection is None:
            return self._view_of_file([])
        patience = monotonic() + _RECORD_SECONDS
        for _ in range(_MOST_LOOKS):
            before = database.data_version(connection, self.place.db)
            try:
                while (found := self._look(connection, monotonic() < patience)) is None:
                    sleep(0.001)
                return found
            except Damaged:
                # Somebody may have committed and written the file since the database was read.
                if database.data_version(connection, self.place.db) == before:
                    raise
        found = self._look(connection, False)
        assert found is not None
        return found

    def _look(self, connection: sqlite3.Connection, may_wait: bool) -> View | None:
        """Return what stands there; None where the file is newer, and its record may follow at once."""
        with database.errors(self.place.db), database.snapshot(connection):
            found = connection.execute("SELECT data FROM sessions ORDER BY position").fetchall()
            recorded = connection.execute(
                "SELECT key, value FROM meta WHERE key IN ('file', 'identities')"
            ).fetchall()
            intents = Intents(connection).all()
            meta = {key: json.loads(value) for key, value in recorded}
            is_edited = self._is_edited(meta.get("file"))
            if is_edited and may_wait and self._is_young():
                return None
            try:
                rows: list[Row] = [
                    whole(row) for row in json.loads("[" + ",".join([data for (data,) in found]) + "]")
                ]
            except TypeError as error:
                raise database.damaged(self.place.db, "a session is not readable") from error
            if is_edited:
                if not rows and "file" not in meta:
                    return self._view_of_file(intents)
                rows = self._preview(connection, rows)
        return View(rows, meta.get("identities") or {}, intents)

    def change(self, work: Callable[[Transaction], T], confirm: Confirm | None = None) -> T:
        """Run work under the write lock, commit, and return once the file shows the effect."""
        result, draft = self._commit(work, confirm)
        try:
            self.show(confirm)
        finally:
            draft.follow_up()
        return result

    def commit(self, work: Callable[[Transaction], T], confirm: Confirm | None = None) -> T:
        """Run work under the write lock and commit; the file is left to the next `show`.

        A person's edit is taken in first; one that cannot be stops the change before it begins.
        """
        result, draft = self._commit(work, confirm)
        draft.follow_up()
        return result

    def _commit(self, work: Callable[[Transaction], T], confirm: Confirm | None) -> tuple[T, Transaction]:
        with self._drafting() as draft:
            self._take_in(draft, confirm)
            result = work(draft)
        return result, draft

    @contextmanager
    def _drafting(self) -> Iterator[Transaction]:
        """Hold the write lock. After an error of the disk the next change opens the database anew.

        SQLite opens a file for reading only when it cannot for writing, and stays with that.
        """
        try:
            connection = self.writer()
            with database.transaction(connection, self.place.db):
                yield Transaction(connection, self.clock())
        except Unavailable:
            self.close()
            raise

    def show(self, confirm: Confirm | None = None) -> None:
        """Bring the file up to date if it is behind; an error is marked: what it is about is recorded."""
        connection = self.writer()
        try:
            if self._is_behind(connection):
                self.project(confirm)
        except MamError as error:
            error.recorded, error.retryable = True, False
            more = error.hint if isinstance(error, Damaged) else "the next command writes the file"
            error.hint = f"what you asked for is recorded; {more}"
            raise

    def warm_up(self) -> None:
        """Load what writing the file needs, while there is something else to wait for."""
        from mam.adapters.store.yaml import projection  # noqa: F401

    def _is_behind(self, connection: sqlite3.Connection) -> bool:
        with database.errors(self.place.db):
            rows, file = connection.execute(
                "SELECT EXISTS(SELECT 1 FROM sessions WHERE block IS NULL) OR EXISTS(SELECT 1 FROM forgotten)"
                " OR (SELECT value FROM meta WHERE key='head') IS 'null'"
                " OR coalesce((SELECT value FROM meta WHERE key='identities'), '{}')"
                " != coalesce((SELECT value FROM meta WHERE key='identities_written'), '{}'),"
                " (SELECT value FROM meta WHERE key='file')"
            ).fetchone()
        return bool(rows) or file is None or fingerprint(self.place.yaml) != json.loads(file)

    def note(self, work: Callable[[Transaction], T]) -> T:
        """Run work that changes no session: intents, evidence, log. The file is left alone."""
        with self._drafting() as draft:
            result = work(draft)
        draft.follow_up()
        return result

    def project(self, confirm: Confirm | None = None) -> None:
        """Bring the file up to date with what is committed."""
        from mam.adapters.store.yaml import projection

        with self._drafting() as draft:
            projection.write(
                draft,
                self.place,
                take_in=lambda: self._take_in(draft, confirm),
                is_behind=lambda: self._is_behind(draft.connection),
            )

    def peek(self, read: Callable[[Transaction], T], default: T) -> T:
        """Run a read on what is no session; `default` without a database, or with one of an older mam."""
        connection = self.reader()
        if connection is None:
            return default
        with database.errors(self.place.db), database.snapshot(connection):
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            is_current = version == len(schema.STATE_MIGRATIONS)
            return read(Transaction(connection, self.clock())) if is_current else default

    def others(self) -> int | None:
        """Return a number that changes when somebody else commits; None without a database."""
        connection = self.reader()
        return None if connection is None else database.data_version(connection, self.place.db)

    def servers(self) -> list[str]:
        """Return the tmux servers that running sessions use, or used, without reading the sessions."""
        connection = self.reader()
        if connection is None:
            return []
        with database.errors(self.place.db):
            found = connection.execute("SELECT value FROM meta WHERE key='servers'").fetchone()
        return json.loads(found[0]) if found else []

    def is_edited(self) -> bool:
        """Tell whether the file differs from the one last written."""
        connection = self.reader()
        found = connection and connection.execute("SELECT value FROM meta WHERE key='file'").fetchone()
        return self._is_edited(json.loads(found[0]) if found else None)

    def _is_edited(self, recorded: list[int] | None) -> bool:
        return fingerprint(self.place.yaml) not in (None, recorded)

    def _is_young(self) -> bool:
        found = fingerprint(self.place.yaml)
        return found is not None and abs(self.clock() - found[2] / 1e9) < _YOUNG_SECONDS

    def _take_in(self, draft: Transaction, confirm: Confirm | None) -> None:
        if not self._is_edited(draft.meta("file")):
            return
        from mam.adapters.store.yaml import intake

        intake.take_in(draft, self.place, confirm)

    def _preview(self, connection: sqlite3.Connection, rows: list[Row]) -> list[Row]:
        from mam.adapters.store.yaml import intake

        return intake.preview(connection, self.place, rows, self.clock())

    def _view_of_file(self, intents: list[Intent]) -> View:
        """Return what the file alone says, where no database has taken it in yet."""
        if fingerprint(self.place.yaml) is None:
            return View([], {}, intents)
        from mam.adapters.store.yaml import intake

        found = intake.read_file(self.place)
        if found is None:
            return View([], {}, intents)
        return View([settled(row) for row in found.rows], found.identities, intents)

    def unknown(self, target: str) -> Exception:
        """Return the error for a name that nobody has."""
        return not_found(target, [row["name"] for row in self.view().rows])
