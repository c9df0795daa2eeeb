"""Replaces the folder of a root's state in one step by a new one, and keeps the former folder.

The new folder is built beside the old one. Its database has the rows of a checked copy, and its files are
copies of regular files: nothing in it is a link, a pipe or a file of somebody else. A rename exchanges the
two folders, so a crash leaves either the former state as it was, or the new one.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack, contextmanager, suppress

from mam.adapters.store import checked_copy, database, fifo_lock, schema
from mam.adapters.store.root_paths import RootPaths
from mam.adapters.store.rows_and_log import Transaction
from mam.adapters.store.yaml.swap import swap
from mam.adapters.system.atomic_file import flush_folder, make_private_folder
from mam.core.errors import MamError, NotAllowed, RegistryBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

_LARGEST_DATABASE, _LARGEST_FILE = 8 << 30, 64 << 20
_MOST_FILES, _DEEPEST = 100_000, 3
_KEPT, _UNFINISHED, _LOCK, _PATIENCE = "kept", "unfinished", "init.lock", 10.0
_IGNORE = "# Made by mam: this folder is state of this machine.\n*\n"


class StateReplacement:
    """A new folder for the state of a root. `kept` is where the former one is kept."""

    def __init__(self, paths: RootPaths, user_folder: str, name: str) -> None:
        """`user_folder` is that of the user state, and `name` is one that no other kept state has."""
        self.former = paths
        self.paths = RootPaths(paths.root, paths.yaml, f"{paths.state}.new")
        self.kept = os.path.join(user_folder, _KEPT, name)
        # What lay in the former folder and was not taken over, by its path there.
        self.aside: list[str] = []
        # The inode of the new folder, by which the user state will know the root.
        self.inode = 0

    @property
    def keeps_something(self) -> bool:
        """Whether anything is in the folder `kept` after the replacement; to be asked after `begin`."""
        return os.path.lexists(self.former.state) or (
            os.path.isdir(self.kept) and bool(os.listdir(self.kept))
        )

    def begin(self) -> None:
        """Make the new folder, and keep what a crash left in its place."""
        with database.errors(self.former.state):
            if os.path.lexists(self.former.state):
                _check_owner(self.former.state)
        with database.errors(self.kept):
            make_private_folder(os.path.dirname(self.kept))
            os.mkdir(self.kept, 0o700)
            if os.path.lexists(self.paths.state):
                self._keep(self.paths.state, _UNFINISHED)
            if os.path.lexists(self.former.yaml):
                with suppress(MamError):
                    name = os.path.join(self.kept, os.path.basename(self.former.yaml))
                    _copy(self.former.yaml, name)
            new = self.paths
            for folder in (new.state, new.spool, new.launches, new.settings, new.jobs):
                os.mkdir(folder, 0o700)
            self.inode = os.stat(new.state).st_ino
            with open(os.path.join(new.state, ".gitignore"), "x", encoding="utf-8") as file:
                file.write(_IGNORE)

    def open_source(self) -> sqlite3.Connection | None:
        """Return a connection to a copy of the former database; None if there is none."""
        if not os.path.lexists(self.former.db):
            return None
        copy = os.path.join(self.paths.state, "source.db")
        with database.errors(self.former.db):
            for suffix in ("", "-wal"):
                database.copy_regular(
                    self.former.db + suffix, copy + suffix, is_required=not suffix, largest=_LARGEST_DATABASE
                )
        return checked_copy.check_source(copy)

    def close_source(self, connection: sqlite3.Connection) -> None:
        """Close the copy of the former database, and remove it."""
        connection.close()
        copy = os.path.join(self.paths.state, "source.db")
        for suffix in ("", "-wal", "-shm", "-journal"):
            with suppress(FileNotFoundError):
                os.unlink(copy + suffix)

    def open_target(self) -> sqlite3.Connection:
        """Return a connection to the new database, which has mam's tables and no rows."""
        return database.connect(self.paths.db, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS, create=True)

    def copy_files(self) -> None:
        """Copy the files of jobs and the settings of agents; note in `aside` what is not taken over.

        Payloads and launch files are not taken over: they say what some process did or wanted a moment ago.
        """
        with database.errors(self.former.state):
            self._copy_folder(self.former.jobs, self.paths.jobs, _DEEPEST)
            self._copy_folder(self.former.settings, self.paths.settings, 1)
            for entry in sorted(os.scandir(self.former.state), key=lambda entry: entry.name):
                is_plain = _is_own_file(entry) or _is_own_folder(entry.path)
                if entry.path not in (self.former.jobs, self.former.settings) and not (
                    entry.name in _MADE_ANEW and is_plain
                ):
                    self._set_aside(entry.path)

    def _copy_folder(self, source: str, target: str, depth: int) -> None:
        if not os.path.lexists(source):
            return
        if not _is_own_folder(source) or not depth:
            self._set_aside(source)
            return
        for number, entry in enumerate(os.scandir(source)):
            place = os.path.join(target, entry.name)
            if entry.is_dir(follow_symlinks=False):
                os.mkdir(place, 0o700)
                self._copy_folder(entry.path, place, depth - 1)
            elif number < _MOST_FILES and _is_own_file(entry):
                try:
                    _copy(entry.path, place)
                except MamError:
                    self._set_aside(entry.path)
            else:
                self._set_aside(entry.path)

    def _set_aside(self, path: str) -> None:
        self.aside.append(os.path.relpath(path, self.former.state))

    @contextmanager
    def transaction(self, connection: sqlite3.Connection, now: float) -> Iterator[Transaction]:
        """Fill the new database: all of it, or nothing."""
        with database.transaction(connection, self.paths.db):
            yield Transaction(connection, now)

    def undo(self) -> bool:
        """Remove the new folder; False if it is in its place already: the former one has its name then."""
        import shutil

        former = _former_name(self.former)
        if os.path.isdir(former) and not os.path.lexists(self.former.state):
            os.rename(former, self.former.state)
        try:
            is_built = os.stat(self.paths.state).st_ino == self.inode
        except FileNotFoundError:
            return False
        if is_built:
            shutil.rmtree(self.paths.state, ignore_errors=True)
            # What a crash left behind may be the only former state.
            if not os.path.lexists(os.path.join(self.kept, _UNFINISHED)):
                shutil.rmtree(self.kept, ignore_errors=True)
        return is_built

    def seal(self, connection: sqlite3.Connection) -> None:
        """Close the new database, and send all of the new folder to the disk."""
        with database.errors(self.paths.db):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
            handle = os.open(self.paths.db, os.O_RDWR | os.O_CLOEXEC)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
            for folder in (self.paths.jobs, self.paths.settings, self.paths.state):
                flush_folder(folder)
            flush_folder(os.path.dirname(self.paths.state))

    def exchange(self) -> None:
        """Put the new folder in the place of the former one, if there is one."""
        with database.errors(self.former.state):
            if not os.path.lexists(self.former.state):
                os.rename(self.paths.state, self.former.state)
            elif not swap(self.paths.state, self.former.state):
                # This file system cannot exchange names. A crash between the renames leaves both folders
                # beside each other, and `finish_interrupted` goes on.
                os.rename(self.former.state, _former_name(self.former))
                os.rename(self.paths.state, self.former.state)
                os.rename(_former_name(self.former), self.paths.state)
            flush_folder(os.path.dirname(self.former.state))

    def keep_former(self) -> str | None:
        """Move the former folder to what is kept, after the exchange; return where all of that is.

        None if there was nothing to keep.
        """
        with database.errors(self.kept):
            if os.path.lexists(self.paths.state):
                return self._keep(self.paths.state, "state")
            if os.listdir(self.kept):
                return self.kept
            os.rmdir(self.kept)
            return None

    def _keep(self, path: str, name: str) -> str:
        """Move a folder to what is kept; on another file system it stays beside the state."""
        try:
            os.rename(path, os.path.join(self.kept, name))
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            beside = f"{self.former.state}.kept-{os.path.basename(self.kept)}-{name}"
            os.rename(path, beside)
            return beside
        return self.kept


# What mam makes by itself in every state folder.
_MADE_ANEW = {
    *("state.db", "state.db-wal", "state.db-shm", "state.db.queue", "resident.lock"),
    *("spool", "launch", ".gitignore", "reserve"),
}


def _former_name(paths: RootPaths) -> str:
    return f"{paths.state}.former"


def finish_interrupted(paths: RootPaths) -> bool:
    """Finish an exchange of folders that a crash interrupted on a file system without one; False if none."""
    former = _former_name(paths)
    if os.path.lexists(paths.state) or not os.path.isdir(former):
        return False
    new = f"{paths.state}.new"
    with database.errors(paths.state):
        os.rename(new if os.path.isdir(new) else former, paths.state)
    return True


@contextmanager
def only_one(user_folder: str) -> Iterator[None]:
    """Let one process at a time replace the state of a root of this user."""
    with database.errors(user_folder):
        os.makedirs(user_folder, mode=0o700, exist_ok=True)
        path = os.path.join(user_folder, _LOCK)
    with ExitStack() as stack:
        try:
            with database.errors(path):
                stack.enter_context(fifo_lock.hold(path, _PATIENCE))
        except fifo_lock.QueueStuck:
            raise RegistryBusy(
                "another mam init or mam restore is under way, here or in another root",
                hint="repeat the command",
            ) from None
        yield


def _copy(source: str, target: str) -> None:
    database.copy_regular(source, target, is_required=True, largest=_LARGEST_FILE, flushed=True)


def _check_owner(folder: str) -> None:
    """Refuse a state folder that is a link, or of another user: nothing in it could be relied on."""
    facts = os.lstat(folder)
    if not stat.S_ISDIR(facts.st_mode):
        raise NotAllowed(f"{folder} is not a folder", hint="move it away, and repeat the command")
    if facts.st_uid != os.geteuid():
        raise NotAllowed(f"{folder} belongs to another user", hint="copy the directory, and use the copy")


def _is_own_folder(path: str) -> bool:
    facts = os.lstat(path)
    return stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()


def _is_own_file(entry: os.DirEntry[str]) -> bool:
    facts = entry.stat(follow_symlinks=False)
    return stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid()
