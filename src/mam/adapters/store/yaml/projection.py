"""Writes the YAML file: renders the sessions that changed and copies the rest.

mam writes the new text to a temporary file, flushes it to the disk and swaps it with the old file, which it
keeps as `.bak`, unless that has what was forgotten or purged. It holds the write lock of the database all the
time. So one fixed temporary name is enough, and an existing temporary file always belongs to a dead process.
"""

from __future__ import annotations

import json
import os
import time

from mam.adapters.store import database
from mam.adapters.store.root_paths import fingerprint
from mam.adapters.store.rows_and_log import CHANGED_BY, DROPS_FORMER_FILE, POSSIBLY_SHOWN
from mam.adapters.store.yaml import document, yaml_text
from mam.adapters.store.yaml.swap import put_new, swap
from mam.adapters.system import atomic_file
from mam.adapters.system.atomic_file import flush_folder
from mam.core.errors import Unavailable
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.adapters.store.root_paths import RootPaths
    from mam.adapters.store.rows_and_log import Transaction


def write(
    transaction: Transaction, paths: RootPaths, before: list[int] | None, is_behind: Callable[[], bool]
) -> bool:
    """Update the file from the database, if it is not up to date.

    `before` is the fingerprint of the file whose content the database has. False, without a change, if
    another process wrote the file since.
    """
    if not is_behind():
        return True
    fresh, parts = _render(transaction)
    keeps_former = not transaction.meta(DROPS_FORMER_FILE)
    with database.errors(paths.yaml):
        after = _replace(paths.yaml, document.join(parts), before, keeps_former=keeps_former)
    if after is None:
        return False
    _record_written(transaction, fresh, parts, after)
    return True


def _render(transaction: Transaction) -> tuple[dict[str, str], document.Parts]:
    """Return the new blocks and the complete file; record nothing, because the file may still change."""
    fresh: dict[str, str] = {}
    blocks = []
    for session_id, data, block in transaction.connection.execute(
        "SELECT id, CASE WHEN block IS NULL THEN data END, block FROM sessions ORDER BY position"
    ):
        if block is None:
            fresh[session_id] = yaml_text.dump_row(json.loads(data))
        blocks.append(fresh.get(session_id, block))
    return fresh, _around(transaction, blocks)


def _around(transaction: Transaction, blocks: list[str]) -> document.Parts:
    """Return the blocks with head and tail, in which only the time and the identities change."""
    updated_at, identities = stamp(transaction.now), transaction.identities()
    parts: document.Parts | None = None
    if transaction.meta("head") is not None:
        parts = document.Parts(transaction.meta("head"), blocks, transaction.meta("tail") or "")
        if identities != (transaction.meta("identities_written") or {}):
            parts = document.put_key(parts, "agent_identities", identities)
        parts = parts and document.put_time(parts, updated_at)
    if parts is None:
        head = document.render_head(updated_at, identities, transaction.meta("extra") or {})
        parts = document.Parts(head, blocks, "")
    return document.with_marks(parts)


def _record_written(
    transaction: Transaction, fresh: dict[str, str], parts: document.Parts, after: list[int]
) -> None:
    """Record that the file is up to date."""
    transaction.connection.executemany(
        "UPDATE sessions SET block=?, written=NULL WHERE id=?",
        [(block, session_id) for session_id, block in fresh.items()],
    )
    transaction.set_meta("head", parts.head)
    transaction.set_meta("tail", parts.tail)
    transaction.set_meta("file", after)
    transaction.set_meta("identities_written", transaction.identities())
    transaction.connection.execute("DELETE FROM forgotten")
    transaction.connection.execute(
        "DELETE FROM meta WHERE key IN (?, ?, ?)", (DROPS_FORMER_FILE, CHANGED_BY, POSSIBLY_SHOWN)
    )


def _replace(path: str, text: bytes, before: list[int] | None, *, keeps_former: bool) -> list[int] | None:
    """Replace the file; None if another process wrote it since the fingerprint `before`."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.tmp")
    after = _write(temporary, text)
    try:
        is_there = fingerprint(path) == before and _put(temporary, path, before)
        if is_there and not keeps_former:
            atomic_file.discard(f"{path}.bak")
    except (OSError, Unavailable):
        atomic_file.discard(temporary)
        raise
    if not is_there:
        atomic_file.discard(temporary)
        return None
    flush_folder(folder)
    return after


def _put(temporary: str, path: str, before: list[int] | None) -> bool:
    """Swap the new file in and keep the old one; False, without a change, if the old one is not `before`."""
    try:
        swapped = swap(temporary, path)
    except FileNotFoundError:
        return _put_first(temporary, path)
    if not swapped:
        return _put_over(temporary, path, before)
    if fingerprint(temporary) != before:
        swap(temporary, path)
        return False
    _keep(temporary, f"{path}.bak" if before is not None else None)
    return True


def _put_first(temporary: str, path: str) -> bool:
    """Put the file where none exists; False if one exists by now."""
    try:
        if not put_new(temporary, path):
            os.rename(temporary, path)
    except FileExistsError:
        return False
    return True


def _put_over(temporary: str, path: str, before: list[int] | None) -> bool:
    """Replace the file on a system that cannot swap; an edit between the check and the rename is lost."""
    if before is not None:
        beside = f"{temporary}.old"
        with open(path, "rb") as old:
            _write(beside, old.read())
        _keep(beside, f"{path}.bak")
    if fingerprint(path) != before:
        return False
    os.rename(temporary, path)
    return True


def _keep(old: str, backup: str | None) -> None:
    if backup is None:
        os.unlink(old)
    else:
        os.rename(old, backup)


def _write(path: str, text: bytes) -> list[int]:
    """Write and flush a new private file, and return its fingerprint."""
    atomic_file.discard(path)
    # The time is finer than a tick of the kernel, so an edit in place in the same tick has another time.
    facts = atomic_file.create(path, text, flushed=True, modified_ns=time.time_ns())
    return [facts.st_ino, facts.st_size, facts.st_mtime_ns]
