"""A copy from which a root is restored: opened, checked, and never written.

The file may be anybody's. It is copied into a private folder before SQLite sees it, because SQLite would
write beside it.
"""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from contextlib import contextmanager

from mam.adapters.store import backup_file, checked_copy, database, incarnation
from mam.adapters.store.root_identity import ID
from mam.core.errors import Damaged, InvalidPath, RegistryCorrupt, SchemaTooNew, Unavailable
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import ExitStack
    from typing import Any

    from mam.core.backup_rotation import Copy

    Document = dict[str, Any]

_LARGEST = 8 << 30
_ROOT_ID = re.compile(r"[0-9a-f]{16}\Z")
_HINT = "mam backup --list shows the copies of this root"
_OTHERS = "take another: mam backup --list"


class Source:
    """An open copy. `database` is a private file with its content, `state` the folder that it was made of."""

    __slots__ = (
        "connection",
        "database",
        "incarnation",
        "made_at",
        "path",
        "root",
        "root_id",
        "state",
        "tokens",
    )

    def __init__(self, path: str, private: str, connection: sqlite3.Connection, made_at: float) -> None:
        """`made_at` counts if the copy does not say by itself when it was made."""
        self.path = path
        self.database = private
        self.connection = connection
        values = database.read_meta(connection, path, (ID, incarnation.KEY))
        facts = backup_file.read_facts(connection, path)
        named = values.get(ID) or (facts.root_id if facts is not None else None)
        is_fit = isinstance(named, str) and _ROOT_ID.match(named)
        self.root_id = str(named) if is_fit else None
        self.incarnation = values.get(incarnation.KEY)
        self.made_at = facts.made_at if facts is not None else made_at
        self.root = facts.root if facts is not None else None
        self.state = facts.state if facts is not None else None
        self.tokens = dict((facts.tokens if facts is not None else None) or {})


@contextmanager
def open_source(path: str, user_folder: str) -> Iterator[Source]:
    """Open a copy; raise InvalidPath for what is no file, and RegistryCorrupt for what mam cannot read."""
    facts = _check_regular(path)
    with backup_file.scratch(user_folder) as folder:
        private = os.path.join(folder, "source.db")
        with _as_copy(path), backup_file.open_copy(path, folder) as plain, database.errors(folder):
            for suffix in ("", "-wal"):
                database.copy_regular(
                    plain + suffix, private + suffix, is_required=not suffix, largest=_LARGEST
                )
        connection = _checked(path, private)
        try:
            with _as_copy(path):
                source = Source(path, private, connection, facts.st_mtime)
            yield source
        finally:
            connection.close()


@contextmanager
def _as_copy(path: str) -> Iterator[None]:
    """Name the way on where a copy is damaged: its file stays, and there may be others."""
    try:
        yield
    except RegistryCorrupt as error:
        raise RegistryCorrupt(error.message, hint=_OTHERS) from error


def open_newest(
    stack: ExitStack, paths: Sequence[str], user_folder: str, tried: list[Document]
) -> Source | None:
    """Open the first copy that can be read, until the stack ends; note in `tried` why others cannot.

    Raises Unavailable where the machine does not allow it now, such as with a full disk. That says nothing
    of the copy, and an older one would not be better.
    """
    for path in paths:
        try:
            return stack.enter_context(open_source(path, user_folder))
        except (Damaged, InvalidPath) as error:
            tried.append({"file": path, "problem": error.message})
    return None


def copies_by_path(user_folder: str, state: str, is_known: Callable[[str], bool]) -> list[Copy]:
    """Return the copies, the newest first, of a root at a path that the user state has lost.

    A root that it knows may have been moved from there.
    """
    for root_id in backup_file.root_ids(user_folder):
        if is_known(root_id):
            continue
        listed = backup_file.copies(user_folder, root_id)
        for copy in listed:
            try:
                with open_source(copy.path, user_folder) as source:
                    if source.state == state:
                        return listed
                    break
            except (Damaged, InvalidPath):
                continue
    return []


def counted_copies(copies: Sequence[Copy], user_folder: str) -> list[Document]:
    """Return for each copy that can be read how many sessions and messages it has."""
    counted = []
    for copy in copies:
        try:
            sessions, messages = _counts(copy.path, user_folder)
        except (Damaged, Unavailable):
            # Who wants to restore this one learns then why mam cannot.
            continue
        made_at = stamp(copy.made_at)
        counted.append({"file": copy.path, "made_at": made_at, "sessions": sessions, "messages": messages})
    return counted


def richer(copies: Sequence[Document], sessions: int, messages: int) -> Document | None:
    """Return the first of the counted copies that has more sessions, or twice as many messages; or None."""
    for copy in copies:
        has_more = copy["messages"] > messages and copy["messages"] >= 2 * messages
        if copy["sessions"] > sessions or has_more:
            return copy
    return None


def _counts(path: str, user_folder: str) -> tuple[int, int]:
    """Return how many sessions and messages a copy has."""
    with backup_file.scratch(user_folder) as folder:
        private = os.path.join(folder, "source.db")
        with backup_file.open_copy(path, folder) as plain, database.errors(folder):
            database.copy_regular(plain, private, is_required=True, largest=_LARGEST)
        with database.errors(path):
            connection = sqlite3.connect(private, isolation_level=None)
            try:
                connection.execute("PRAGMA trusted_schema=OFF")
                (sessions,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
                (messages,) = connection.execute("SELECT count(*) FROM messages").fetchone()
            finally:
                connection.close()
    return int(sessions), int(messages)


def _check_regular(path: str) -> os.stat_result:
    try:
        facts = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidPath(f"there is no file {path}", hint=_HINT) from None
    except (OSError, ValueError) as error:
        raise InvalidPath(f"{path} cannot be read: {error}", hint=_HINT) from None
    if not stat.S_ISREG(facts.st_mode):
        raise InvalidPath(f"{path} is not a regular file", hint=_HINT)
    return facts


def _checked(path: str, private: str) -> sqlite3.Connection:
    try:
        connection = checked_copy.check_source(private, path)
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='sessions'").fetchone():
            connection.close()
            raise RegistryCorrupt
        return connection
    except SchemaTooNew:
        raise
    except RegistryCorrupt as error:
        raise RegistryCorrupt(
            f"{path} cannot be restored: it is damaged, or no copy of a root's database",
            hint=_OTHERS,
        ) from error
