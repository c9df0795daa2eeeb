"""Keeps a copy of a database before a newer mam changes its schema, so that one can go back."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress

from mam.adapters.store import database
from mam.adapters.system.atomic_file import flush_folder

BACKUPS = "backups"


def folder_of(user_folder: str, root_id: str | None, state: str) -> str:
    """Return the folder of the copies of a root. A root without an id is named by the path of its state."""
    if root_id is None:
        import hashlib

        root_id = f"path-{hashlib.sha256(os.fsencode(state)).hexdigest()[:16]}"
    return os.path.join(user_folder, BACKUPS, root_id)


def write(
    connection: sqlite3.Connection, folder: str, schema_number: str, now: float, *, prefix: str = ""
) -> str:
    """Copy a database as it is into a new file, flushed to the disk; return its path.

    Raises a MamError if that is not possible, and leaves nothing then.
    """
    from time import gmtime, strftime

    moment = strftime("%Y%m%dT%H%M%SZ", gmtime(now))
    path = os.path.join(folder, f"{prefix}{moment}-before-migration-of-{schema_number}.db")
    unfinished = f"{path}.{os.getpid()}.new"
    with database.errors(path):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        try:
            _copy(connection, unfinished)
            os.replace(unfinished, path)
        except BaseException:
            for name in (unfinished, f"{unfinished}-journal"):
                with suppress(FileNotFoundError):
                    os.unlink(name)
            raise
        flush_folder(folder)
    return path


def _copy(connection: sqlite3.Connection, target: str) -> None:
    handle = os.open(target, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        copy = sqlite3.connect(target, isolation_level=None)
        try:
            connection.backup(copy)
            # The log of the source is part of the copy already; a copy is one file.
            copy.execute("PRAGMA journal_mode=DELETE")
        finally:
            copy.close()
        os.fsync(handle)
    finally:
        os.close(handle)
