"""The user state: records that belong to the user and not to one root, such as roots and open conversations.

It lies in the home that the password database names, whatever HOME says, so that no agent and no sandbox
with another HOME has roots of its own. A lease names the process that has a conversation open. The lease
ends with that process: if its holder is dead, the conversation is free, even if the record still exists.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from mam.adapters.store import database, launch_secret, schema
from mam.adapters.system import json_text as json
from mam.adapters.system import process
from mam.core.errors import Damaged, InvalidSettings, Unavailable
from mam.core.root_state import KnownRoot

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

# Names another folder for the user state. Processes that mam starts inherit it.
VARIABLE = "MAM_STATE_HOME"
_FILE, _FORMER_FILE = "user.db", "host.db"
# A younger file may belong to a launch that records its secret in this moment.
_STRAY_SECONDS = 3600.0
_TAKEN_OVER = "SELECT value FROM meta WHERE key='former'"
_LOSE = "UPDATE known_roots SET state='lost ' || id, inode=0 WHERE"
_ROOT = "SELECT id, root, registry, state, inode, is_complete FROM known_roots"


class Lease:
    """The session and the process that hold a conversation. A copy of a root has the same session ids."""

    __slots__ = ("holder", "root", "root_id", "session_id")

    def __init__(self, root: str, session_id: str, holder: dict[str, Any], root_id: str | None) -> None:
        """`root_id` is None in the record of mam 0.1."""
        self.root = root
        self.session_id = session_id
        self.holder = holder
        self.root_id = root_id

    def is_of(self, other: Lease) -> bool:
        """Tell whether both belong to the same session."""
        return self.session_id == other.session_id and (
            self.root_id is None or other.root_id is None or self.root_id == other.root_id
        )


class ResidentStarts:
    """The starts of the resident of a root since one last ran well: how many, the last, and the next."""

    __slots__ = ("at", "count", "next_at")

    def __init__(self, count: int, at: float, next_at: float) -> None:
        self.count = count
        self.at = at
        self.next_at = next_at

    def is_resting(self, now: float) -> bool:
        """Tell whether it is too early for another start. A clock that was put back does not make it so."""
        return self.at <= now < self.next_at


def state_home(environ: Mapping[str, str]) -> str:
    """Return the folder of the user state, which each machine has its own of, as homes may be shared."""
    named = environ.get(VARIABLE)
    if named:
        if not os.path.isabs(named):
            raise InvalidSettings(f"{VARIABLE} is not an absolute path: {named}", hint="name a full path")
        return named
    from mam.adapters.system.machine import machine_id

    return os.path.join(_home(environ), ".local", "state", "mam", machine_id() or "machine")


def _home(environ: Mapping[str, str]) -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        # Containers run as users that no password database knows.
        return environ.get("HOME") or os.path.expanduser("~")


def former_file(environ: Mapping[str, str]) -> str | None:
    """Return the file of the user state of mam 0.1, if there is one and no other user state was named."""
    if environ.get(VARIABLE):
        return None
    home = environ.get("HOME") or os.path.expanduser("~")
    bases = (
        environ.get("XDG_STATE_HOME"),
        os.path.join(home, ".local", "state"),
        os.path.join(_home(environ), ".local", "state"),
    )
    files = [os.path.join(base, "mam", _FORMER_FILE) for base in bases if base]
    return next((file for file in files if os.path.isfile(file)), None)


class UserState:
    """The user state; its database is opened when it is first needed."""

    def __init__(self, folder: str, clock: Callable[[], float], former: str | None = None) -> None:
        """Store the folder, and the file of mam 0.1 to take over; open nothing yet."""
        self.folder = folder
        self.path = os.path.join(folder, _FILE)
        self.clock = clock
        self.former = former
        self._connection: sqlite3.Connection | None = None
        self._is_writer = False

    def close(self) -> None:
        """Close the database."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._is_writer = False

    def _writer(self) -> sqlite3.Connection:
        """Return a connection for writing; the first one takes over the user state of mam 0.1."""
        if not self._is_writer:
            with database.errors(self.folder):
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
            connection = database.connect(
                self.path,
                schema.USER_MIGRATIONS,
                schema.USER_ADDITIONS,
                create=True,
                with_wal=False,
                keep_copy=self._keep_copy,
            )
            self.close()
            self._connection = connection
            # Without the file nothing is recorded: another caller may know where it is.
            if self.former is not None and not connection.execute(_TAKEN_OVER).fetchone():
                with database.transaction(connection, self.path):
                    self._take_over(connection)
            self._is_writer = True
        assert self._connection is not None
        return self._connection

    def _keep_copy(self, connection: sqlite3.Connection, schema_number: str) -> None:
        """Keep a copy of the user state beside it before its schema changes."""
        from mam.adapters.store import backup_file
        from mam.core.backup_rotation import MIGRATION

        path = backup_file.new_path(
            self.folder, MIGRATION, self.clock(), schema_number=schema_number, prefix="user-"
        )
        backup_file.write(connection, path, None, is_checked=False)

    def _take_over(self, connection: sqlite3.Connection) -> None:
        """Copy roots, leases and starts from the file of mam 0.1, once. The file stays as it is."""
        problem = None
        try:
            for table, fields in (
                ("roots", "path, registry, seen_at"),
                ("leases", "kind, conversation, root, session_id, holder, at"),
                ("started", "root, session_id"),
            ):
                marks = ", ".join("?" * (fields.count(",") + 1))
                connection.executemany(
                    f"INSERT OR IGNORE INTO {table}({fields}) VALUES({marks})",
                    self._former_rows(f"SELECT {fields} FROM {table}"),  # noqa: S608
                )
        except Damaged as error:
            # It cannot be read later either, and must not stop every change. The doctor shows it.
            problem = error.message
        record = json.dumps({"file": self.former, "problem": problem})
        connection.execute("INSERT OR IGNORE INTO meta VALUES('former', ?)", (record,))

    def former_problem(self) -> str | None:
        """Return why the user state of mam 0.1 was not taken over; None if it was, or if there is none."""
        for (record,) in self._read(_TAKEN_OVER):
            with database.errors(self.path):
                problem: str | None = json.loads(record)["problem"]
                return problem
        return None

    def _former_rows(self, query: str, values: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
        """Return rows of the file of mam 0.1; nothing without one."""
        if self.former is None:
            return []
        with database.errors(self.former):
            former = database.connect_to_read(self.former, schema.USER_MIGRATIONS[:2])
            try:
                return former.execute(query, values).fetchall()
            finally:
                former.close()

    def _reader(self) -> sqlite3.Connection | None:
        """Return a connection for reading, also in a folder that a sandbox forbids to write; None without a
        database."""
        if isinstance(self._connection, database.MigratedCopy) and self._connection.is_old():
            self.close()
        if self._connection is None:
            if not os.path.exists(self.path):
                return None
            self._connection = database.connect_to_read(
                self.path, schema.USER_MIGRATIONS, schema.USER_ADDITIONS
            )
        return self._connection

    def _read(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with database.errors(self.path):
            connection = self._reader()
            return [] if connection is None else connection.execute(query, values).fetchall()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """Work on the database; after an error of the disk, the next use opens it again."""
        try:
            with database.errors(self.path):
                yield self._writer()
        except Unavailable:
            self.close()
            raise

    def roots(self) -> list[tuple[str, str]]:
        """Return every root of this user with its registry file."""
        rows = self._read(
            "SELECT root, registry FROM known_roots WHERE inode != 0 UNION SELECT path, registry FROM roots"
        )
        if not os.path.exists(self.path):
            rows = self._former_rows("SELECT path, registry FROM roots")
        return sorted({(root, registry) for root, registry in rows})

    def directories_of_roots(self) -> set[str]:
        """Return the directories of the roots with their state in `.mam`, also of those that are gone."""
        rows = self._read("SELECT root FROM known_roots WHERE inode != 0 AND state = root || '/.mam'")
        return {root for (root,) in rows}

    def root_at(self, state: str) -> KnownRoot | None:
        """Return the root that is recorded at the path of a state folder."""
        return self._known_root(f"{_ROOT} WHERE state=?", state)

    def root_by_id(self, root_id: str | None) -> KnownRoot | None:
        """Return the root that is recorded with an id."""
        return None if root_id is None else self._known_root(f"{_ROOT} WHERE id=?", root_id)

    def roots_with_inode(self, inode: int) -> list[KnownRoot]:
        """Return the roots whose state folder had this inode; one folder may have several paths."""
        return self._known_roots(f"{_ROOT} WHERE inode=?", inode)

    def _known_root(self, query: str, value: str) -> KnownRoot | None:
        return next(iter(self._known_roots(query, value)), None)

    def _known_roots(self, query: str, value: str | int) -> list[KnownRoot]:
        return [
            KnownRoot(root_id, root, registry, state, inode, is_complete=bool(is_complete))
            for root_id, root, registry, state, inode, is_complete in self._read(query, (value,))
        ]

    def is_known_without_id(self, registry: str) -> bool:
        """Tell whether mam 0.1 recorded the root of a registry file."""
        query = "SELECT 1 FROM roots WHERE registry=?"
        return bool(self._read(query, (registry,)) or self._former_rows(query, (registry,)))

    def record_root(self, known: KnownRoot) -> KnownRoot:
        """Record a root and return the record; another process may have recorded this folder just now.

        A new id gives way to the one that the folder has been given meanwhile. Another root that had this
        path may have been moved: its id stays known, without a path.
        """
        with self._using() as connection, database.transaction(connection, self.path):
            row = connection.execute(f"{_ROOT} WHERE state=?", (known.state,)).fetchone()
            if row is not None and row[4] == known.inode and row[0] != known.id and not known.is_complete:
                return KnownRoot(*row[:5], is_complete=bool(row[5]))
            connection.execute("DELETE FROM known_roots WHERE id=?", (known.id,))
            connection.execute(f"{_LOSE} state=?", (known.state,))
            connection.execute("DELETE FROM roots WHERE registry=?", (known.registry,))
            connection.execute(
                "INSERT INTO known_roots VALUES(?, ?, ?, ?, ?, ?, ?)",
                (
                    known.id,
                    known.root,
                    known.registry,
                    known.state,
                    known.inode,
                    known.is_complete,
                    self.clock(),
                ),
            )
        return known

    def lose_root(self, root_id: str) -> None:
        """Record that a root is not at its path any more. It stays known by its id, wherever it is."""
        with self._using() as connection:
            connection.execute(f"{_LOSE} id=?", (root_id,))

    def forget_root(self, root_id: str) -> None:
        """Delete the record of a root that was never made."""
        with self._using() as connection:
            connection.execute("DELETE FROM known_roots WHERE id=?", (root_id,))

    def note_launch(self, root_id: str, session_id: str, command: dict[str, Any]) -> None:
        """Record what a session of a root runs from now on."""
        with self._using() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO launches VALUES(?, ?, ?, ?)",
                (root_id, session_id, json.dumps(command, sort_keys=True), self.clock()),
            )

    def launch_of(self, root_id: str | None, session_id: str) -> dict[str, Any] | None:
        """Return what a session ran last; None if this user's mam never started it."""
        query = "SELECT command FROM launches WHERE root_id=? AND session_id=?"
        for (command,) in self._read(query, (root_id, session_id)):
            with database.errors(self.path):
                launched: dict[str, Any] = json.loads(command)
                return launched
        return None

    def forget_launch(self, root_id: str, session_id: str) -> None:
        """Delete the record of what a session ran that never comes back."""
        with self._using() as connection:
            connection.execute("DELETE FROM launches WHERE root_id=? AND session_id=?", (root_id, session_id))

    def note_script(self, root_id: str, job_id: str, path: str, content: bytes) -> None:
        """Keep a copy of the script that will check a job."""
        with self._using() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO scripts VALUES(?, ?, ?, ?, ?)",
                (root_id, job_id, path, content, self.clock()),
            )

    def script_of(self, root_id: str | None, job_id: str) -> tuple[str, bytes] | None:
        """Return path and content of the script of a job; None if this user's mam never saw it."""
        query = "SELECT path, content FROM scripts WHERE root_id=? AND job_id=?"
        for path, content in self._read(query, (root_id, job_id)):
            return path, bytes(content)
        return None

    def script_jobs(self, root_id: str) -> set[str]:
        """Return the jobs of a root whose scripts are kept."""
        return {job_id for (job_id,) in self._read("SELECT job_id FROM scripts WHERE root_id=?", (root_id,))}

    def forget_script(self, root_id: str, job_id: str) -> None:
        """Delete the copy of a job's script."""
        with self._using() as connection:
            connection.execute("DELETE FROM scripts WHERE root_id=? AND job_id=?", (root_id, job_id))

    def has_started(self, root: str, session_id: str) -> bool:
        """Tell whether this user's mam 0.1 ever started a session."""
        query = "SELECT 1 FROM started WHERE root=? AND session_id=?"
        return bool(self._read(query, (root, session_id)) or self._former_rows(query, (root, session_id)))

    def lease(self, kind: str, conversation: str) -> Lease | None:
        """Return the lease of a conversation, also of a dead holder."""
        query = "SELECT root, session_id, holder, root_id FROM leases WHERE kind=? AND conversation=?"
        for root, session_id, holder, root_id in self._read(query, (kind, conversation)):
            with database.errors(self.path):
                return Lease(root, session_id, json.loads(holder), root_id)
        return None

    def leased(self, session_id: str, root_id: str | None) -> list[str]:
        """Return the conversations that a session of a root has, or had, open."""
        query = "SELECT conversation FROM leases WHERE session_id=? AND (root_id IS NULL OR root_id IS ?)"
        return [conversation for (conversation,) in self._read(query, (session_id, root_id))]

    def take(
        self, kind: str, conversation: str, lease: Lease, is_alive: Callable[[dict[str, Any]], bool]
    ) -> Lease | None:
        """Take a conversation; return None, or the other session that holds it with a live process."""
        with self._using() as connection, database.transaction(connection, self.path):
            other = self.lease(kind, conversation)
            if other and not other.is_of(lease) and is_alive(other.holder):
                return other
            connection.execute(
                "INSERT OR REPLACE INTO leases(kind, conversation, root, session_id, holder, at, root_id)"
                " VALUES(?, ?, ?, ?, ?, ?, ?)",
                (
                    kind,
                    conversation,
                    lease.root,
                    lease.session_id,
                    json.dumps(lease.holder),
                    self.clock(),
                    lease.root_id,
                ),
            )
        return None

    def release(self, session_id: str, root_id: str | None) -> None:
        """Release all conversations of a session of one root, and end its launch secret."""
        with self._using() as connection, database.transaction(connection, self.path):
            connection.execute(
                "DELETE FROM leases WHERE session_id=? AND (root_id IS NULL OR root_id IS ?)",
                (session_id, root_id),
            )
            files = self._end_session_secrets(connection, root_id, session_id)
        for file in files:
            launch_secret.remove(file)

    @property
    def launches_folder(self) -> str:
        """The folder of the launch secrets."""
        return os.path.join(self.folder, "launches")

    def new_secret_file(self) -> str:
        """Return a path for the secret of a new launch; nothing is written yet."""
        return os.path.join(self.launches_folder, os.urandom(16).hex())

    def begin_secret(self, root_id: str, session_id: str, file: str) -> None:
        """Write the secret of a new launch into its file; it replaces the secret of the last launch."""
        with database.errors(file):
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            digest = launch_secret.write_new(file)
        try:
            with self._using() as connection, database.transaction(connection, self.path):
                old_files = self._end_session_secrets(connection, root_id, session_id)
                connection.execute(
                    "INSERT INTO launch_secrets(digest, root_id, session_id, file, at) VALUES(?, ?, ?, ?, ?)",
                    (digest, root_id, session_id, file, self.clock()),
                )
        except BaseException:
            launch_secret.remove(file)
            raise
        for old_file in old_files:
            launch_secret.remove(old_file)

    def note_process(self, root_id: str, session_id: str, identity: dict[str, Any]) -> None:
        """Record the process of a session that runs now."""
        with self._using() as connection:
            connection.execute(
                "UPDATE launch_secrets SET process=? WHERE root_id=? AND session_id=?",
                (json.dumps(identity), root_id, session_id),
            )

    def processes(self) -> list[dict[str, Any]]:
        """Return the process of each session of every root, also of sessions that have ended meanwhile."""
        with database.errors(self.path):
            rows = self._read("SELECT process FROM launch_secrets WHERE process IS NOT NULL")
            return [json.loads(process) for (process,) in rows]

    def process_of(self, file: str) -> dict[str, Any] | None:
        """Return the process of the session whose launch secret is in a file; None if none is recorded."""
        query = "SELECT process FROM launch_secrets WHERE file=? AND process IS NOT NULL"
        with database.errors(self.path):
            return next((json.loads(process) for (process,) in self._read(query, (file,))), None)

    def session_with_secret(self, root_id: str | None, file: str) -> str | None:
        """Return the session of a root whose launch has the secret in a file; None if there is none."""
        digest = launch_secret.digest_in(file)
        query = "SELECT session_id FROM launch_secrets WHERE digest=? AND root_id=?"
        rows = self._read(query, (digest, root_id)) if digest else []
        return rows[0][0] if rows else None

    def secret_files(self, root_id: str | None) -> dict[str, str]:
        """Return the file of the launch secret of each session of a root that has one."""
        query = "SELECT session_id, file FROM launch_secrets WHERE root_id=?"
        return dict(self._read(query, (root_id,)))

    def end_secrets(self, files: Sequence[str]) -> None:
        """End the launch secrets in some files."""
        with self._using() as connection, database.transaction(connection, self.path):
            connection.executemany("DELETE FROM launch_secrets WHERE file=?", [(file,) for file in files])
        for file in files:
            launch_secret.remove(file)

    def remove_stray_secrets(self) -> None:
        """Remove the files of secrets that a process left when it died before it could record the digest.

        A file that a live process carries stays: without it the process counts as one of an ended launch.
        """
        known = {file for (file,) in self._read("SELECT file FROM launch_secrets")}
        strays = set()
        try:
            for entry in os.scandir(self.launches_folder):
                with suppress(FileNotFoundError):
                    if entry.path not in known and self.clock() - entry.stat().st_mtime > _STRAY_SECONDS:
                        strays.add(entry.path)
        except OSError:
            return
        if strays:
            strays -= {file for file, _ in process.carriers(launch_secret.VARIABLE, 0).values()}
        for file in strays:
            launch_secret.remove(file)

    def begin_resident_start(self, root_id: str) -> bool:
        """Record that a resident of a root is started now; False if it is too early after the last start.

        The pause grows with each start until `note_good_resident`. Two processes never start one at once.
        """
        from mam.core.growing_pause import pause_after

        now = self.clock()
        with self._using() as connection, database.transaction(connection, self.path):
            last = self.resident_starts(root_id)
            if last is not None and last.is_resting(now):
                return False
            count = 1 if last is None else last.count + 1
            connection.execute(
                "INSERT OR REPLACE INTO resident_starts VALUES(?, ?, ?, ?)",
                (root_id, count, now, now + pause_after(count)),
            )
        return True

    def resident_starts(self, root_id: str | None) -> ResidentStarts | None:
        """Return the starts of a resident since one last ran well; None without any."""
        query = "SELECT count, at, next_at FROM resident_starts WHERE root_id=?"
        return next((ResidentStarts(*row) for row in self._read(query, (root_id,))), None)

    def last_resident_starts(self) -> dict[str, float]:
        """Return when a resident was last started of each root whose resident has not run well since."""
        return dict(self._read("SELECT root_id, at FROM resident_starts"))

    def note_good_resident(self, root_id: str) -> None:
        """Forget the starts of a resident: it has run well, nothing needs it, or its root is gone."""
        if self.resident_starts(root_id) is not None:
            with self._using() as connection:
                connection.execute("DELETE FROM resident_starts WHERE root_id=?", (root_id,))

    @property
    def resident_logs(self) -> str:
        """The folder of the logs of residents."""
        return os.path.join(self.folder, "residents")

    def _end_session_secrets(
        self, connection: sqlite3.Connection, root_id: str | None, session_id: str
    ) -> list[str]:
        """Delete the digests of a session's secrets; return the files, to remove after the commit."""
        values = (root_id, session_id)
        query = "SELECT file FROM launch_secrets WHERE root_id IS ? AND session_id=?"
        files = [file for (file,) in connection.execute(query, values)]
        connection.execute("DELETE FROM launch_secrets WHERE root_id IS ? AND session_id=?", values)
        return files
