"""Writing the YAML file: only what changed is rendered, the rest is copied.

The new text goes to a temporary file that is flushed to the disk and swapped with the old file,
which is kept as `.bak`. The write lock of the database is held
throughout, so one fixed temporary name is enough and a stray one is always a dead one.
"""

from __future__ import annotations

import json
import os
import time

from mam.adapters.store import database
from mam.adapters.store.root_paths import fingerprint
from mam.adapters.store.yaml import document, yaml_text
from mam.adapters.store.yaml.swap import put_new, swap
from mam.adapters.system import atomic_file
from mam.adapters.system.atomic_file import flush_folder
from mam.core.errors import RegistryBusy, Unavailable
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.adapters.store.root_paths import RootPaths
    from mam.adapters.store.transaction import Transaction

_ATTEMPTS = 5


def write(
    draft: Transaction, place: RootPaths, take_in: Callable[[], None], is_behind: Callable[[], bool]
) -> None:
    """Make the file show what is committed; a file that shows it already is left alone."""
    for _ in range(_ATTEMPTS):
        # In this order: an edit that comes after the look is not taken for the file that was read.
        before = fingerprint(place.yaml)
        take_in()
        if not is_behind():
            return
        fresh, parts = _render(draft)
        with database.errors(place.yaml):
            after = _replace(place.yaml, document.join(parts), before)
        if after is not None:
            _settle(draft, fresh, parts, after)
            return
    raise RegistryBusy(f"{place.yaml} is being edited right now", hint="repeat the command")


def _render(draft: Transaction) -> tuple[dict[str, str], document.Parts]:
    """Return the new blocks and the whole file. Nothing is recorded yet: the file may change under us."""
    fresh: dict[str, str] = {}
    blocks = []
    for session_id, data, block in draft.connection.execute(
        "SELECT id, CASE WHEN block IS NULL THEN data END, block FROM sessions ORDER BY position"
    ):
        if block is None:
            fresh[session_id] = yaml_text.dump_row(json.loads(data))
        blocks.append(fresh.get(session_id, block))
    return fresh, _around(draft, blocks)


def _around(draft: Transaction, blocks: list[str]) -> document.Parts:
    """Return the blocks between head and tail, of which only the time and the identities change."""
    updated_at, identities = stamp(draft.now), draft.identities()
    parts: document.Parts | None = None
    if draft.meta("head") is not None:
        parts = document.Parts(draft.meta("head"), blocks, draft.meta("tail") or "")
        if identities != (draft.meta("identities_written") or {}):
            parts = document.put_key(parts, "agent_identities", identities)
        parts = parts and document.put_time(parts, updated_at)
    if parts is None:
        head = document.render_head(updated_at, identities, draft.meta("extra") or {})
        parts = document.Parts(head, blocks, "")
    return document.with_marks(parts)


def _settle(draft: Transaction, fresh: dict[str, str], parts: document.Parts, after: list[int]) -> None:
    """Record that the file shows everything."""
    draft.connection.executemany(
        "UPDATE sessions SET block=?, written=NULL WHERE id=?",
        [(block, session_id) for session_id, block in fresh.items()],
    )
    draft.set_meta("head", parts.head)
    draft.set_meta("tail", parts.tail)
    draft.set_meta("file", after)
    draft.set_meta("identities_written", draft.identities())
    draft.connection.execute("DELETE FROM forgotten")


def _replace(path: str, text: bytes, before: list[int] | None) -> list[int] | None:
    """Put text in the file's place; None if somebody wrote the file since `before` was taken."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.tmp")
    after = _write(temporary, text)
    try:
        is_there = fingerprint(path) == before and _put(temporary, path, before)
    except (OSError, Unavailable):
        atomic_file.discard(temporary)
        raise
    if not is_there:
        atomic_file.discard(temporary)
        return None
    flush_folder(folder)
    return after


def _put(temporary: str, path: str, before: list[int] | None) -> bool:
    """Swap the new file in and keep the old one; False, and all as it was, if that is not the one we know."""
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
    """Put the file where none is; False if there is one now."""
    try:
        if not put_new(temporary, path):
            os.rename(temporary, path)
    except FileExistsError:
        return False
    return True


def _put_over(temporary: str, path: str, before: list[int] | None) -> bool:
    """Replace the file on a system that cannot swap: an edit between the last look and the rename is lost."""
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
    """Write a new private file, durably, and return its fingerprint."""
    atomic_file.discard(path)
    # A time that no clock tick has: an edit in place in the same tick is told from our own writing.
    facts = atomic_file.create(path, text, flushed=True, modified_ns=time.time_ns())
    return [facts.st_ino, facts.st_size, facts.st_mtime_ns]
