"""A copy from which a root is restored: opened, checked, and never written.

The file may be anybody's. It is copied into a private folder before SQLite sees it, because SQLite would
write beside it.
"""

from __future__ import annotations

import os
import re
import stat
from contextlib import contextmanager

from mam.adapters.store import backup_file, checked_copy, database, incarnation
from mam.adapters.store.root_identity import ID
from mam.core.errors import Damaged, InvalidPath, RegistryCorrupt, SchemaTooNew, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack
    from typing import Any

    Document = dict[str, Any]

_LARGEST = 8 << 30
_ROOT_ID = re.compile(r"[0-9a-f]{16}\Z")
_HINT = "mam backup --list shows the copies of this root"


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
def open_source(path: str) -> Iterator[Source]:
    """Open a copy; raise InvalidPath for what is no file, and RegistryCorrupt for what mam cannot read."""
    import shutil
    import tempfile

    facts = _check_regular(path)
    folder = tempfile.mkdtemp(prefix="mam-restore-")
    try:
        private = os.path.join(folder, "source.db")
        with backup_file.open_copy(path) as plain, database.errors(path):
            for suffix in ("", "-wal"):
                database.copy_regular(
                    plain + suffix, private + suffix, is_required=not suffix, largest=_LARGEST
                )
        connection = _checked(path, private)
        try:
            yield Source(path, private, connection, facts.st_mtime)
        finally:
            connection.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_newest(stack: ExitStack, paths: Sequence[str], tried: list[Document]) -> Source | None:
    """Open the first copy that can be read, until the stack ends; note in `tried` why others cannot."""
    for path in paths:
        try:
            return stack.enter_context(open_source(path))
        except (Damaged, Unavailable, InvalidPath) as error:
            tried.append({"file": path, "problem": error.message})
    return None


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
        connection = checked_copy.check_source(private)
        if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='sessions'").fetchone():
            connection.close()
            raise RegistryCorrupt
        return connection
    except SchemaTooNew as error:
        raise SchemaTooNew(f"{path}: {error.message}", hint=error.hint) from error
    except RegistryCorrupt as error:
        raise RegistryCorrupt(
            f"{path} cannot be restored: it is damaged, or no copy of a root's database", hint=_HINT
        ) from error
