"""Taking in the file: a first registry that somebody else wrote, or a person's edit."""

from __future__ import annotations

import json

from mam.adapters.store import database
from mam.adapters.store.root_paths import fingerprint
from mam.adapters.store.transaction import dump, new_session_id
from mam.adapters.store.yaml import document, yaml_text
from mam.core import registry_edit
from mam.core.errors import Unavailable
from mam.core.registry_edit import KnownRow, refuse
from mam.core.row_checks import flaws
from mam.core.session_row import settled

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.root_paths import RootPaths
    from mam.adapters.store.transaction import Transaction
    from mam.core.session_row import Action, Row


def read_file(place: RootPaths) -> document.Document | None:
    """Return what the file says, each row checked; None where there is nothing, which is never an edit."""
    try:
        with database.errors(place.yaml), open(place.yaml, "rb") as file:
            text = file.read(yaml_text.LARGEST + 1)
    except Unavailable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    found = document.read(text, place.yaml)
    for row in found.rows if found else ():
        for field, reason in flaws(row):
            raise refuse(
                place.yaml, getattr(row, "lines", {}).get(field) or getattr(row, "line", None), reason
            )
    _refuse_twins(found.rows if found else [], place)
    return found


def take_in(draft: Transaction, place: RootPaths, confirm: Callable[[Row, str], bool | None] | None) -> None:
    """Bring what the file says into the database, or raise and leave both as they are."""
    seen = fingerprint(place.yaml)
    found = read_file(place)
    has_rows = bool(draft.rows())
    if found is None or (has_rows and not found.has_list()):
        return
    if draft.meta("file") is None and not has_rows:
        _import(draft, found)
    else:
        _edit(draft, place, found, confirm or (lambda _row, _status: None))
    draft.set_meta("file", seen)


def preview(connection: sqlite3.Connection, place: RootPaths, rows: list[Row], now: float) -> list[Row]:
    """Return the rows as they would be after taking in the file; a claimed status is not believed yet."""
    found = read_file(place)
    if found is None or (rows and not found.has_list()):
        return rows
    known = _known(connection)
    plan = registry_edit.plan_edit(
        known, _forgotten(connection), found.rows, path=place.yaml, complete=not found.is_cut
    )
    plan.claims.clear()
    by_id = {row["id"]: row for row in rows}
    changed = registry_edit.take_in(
        plan, by_id, _action(now), path=place.yaml, confirm=lambda _row, _status: None
    )
    return [settled(changed.get(row["id"]) or row) for row in rows if row["id"] not in plan.removals]


def _import(draft: Transaction, found: document.Document) -> None:
    blocks = found.parts.blocks if found.parts else [None] * len(found.rows)
    for number, (row, block) in enumerate(zip(found.rows, blocks, strict=True), 1):
        session_id = row.get("id") or new_session_id()
        whole = settled(row, session_id)
        draft.connection.execute(
            "INSERT INTO sessions VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            (session_id, row["name"], row["status"], number, whole["version"], dump(whole), dump(row), block),
        )
    draft.set_meta("identities", found.identities)
    draft.set_meta("identities_written", found.identities)
    draft.set_meta("extra", found.extra)
    _keep_text(draft, found)
    draft.log("user", "import", None, sessions=len(found.rows))
    draft.changed = True


def _edit(
    draft: Transaction,
    place: RootPaths,
    found: document.Document,
    confirm: Callable[[Row, str], bool | None],
) -> None:
    known = _known(draft.connection)
    plan = registry_edit.plan_edit(
        known, _forgotten(draft.connection), found.rows, path=place.yaml, complete=not found.is_cut
    )
    if found.identities not in (draft.identities(), draft.meta("identities_written") or {}):
        raise refuse(place.yaml, None, "'agent_identities' was changed, and only mam writes it")
    by_id = {one.id: one.now for one in known}
    changed = registry_edit.take_in(plan, by_id, _action(draft.now), path=place.yaml, confirm=confirm)
    for session_id, row in changed.items():
        if row is None:
            draft.remove(session_id)
            draft.log("user", "forget", by_id[session_id], "removed from the file by hand")
        else:
            draft.put(row)
            draft.log(
                "user", "edit", row, "edited by hand", fields=sorted(_differing(by_id[session_id], row))
            )
    for position, session_id in enumerate(plan.order, 1):
        draft.connection.execute("UPDATE sessions SET position=? WHERE id=?", (position, session_id))
    _keep_blocks(draft, found, plan)
    draft.set_meta("extra", found.extra)
    _keep_text(draft, found)


def _keep_blocks(draft: Transaction, found: document.Document, plan: registry_edit.Plan) -> None:
    """Copy the text of rows that the file shows as they are, so that a new comment in one stays."""
    if found.parts is None:
        draft.connection.execute(
            "UPDATE sessions SET block=NULL,"
            " written=coalesce(written, CASE WHEN block IS NULL THEN NULL ELSE data END)"
        )
        draft.changed = True
        return
    rows = {
        row.get("id") or row["name"]: block for row, block in zip(found.rows, found.parts.blocks, strict=True)
    }
    touched = {session_id for session_id, _, _ in plan.claims} | set(plan.changes)
    for one in _known(draft.connection):
        shown = one.written or one.now
        block = rows.get(shown.get("id") or shown["name"])
        if block is not None and one.id not in touched:
            draft.connection.execute(
                "UPDATE sessions SET block=? WHERE id=? AND block IS NOT NULL", (block, one.id)
            )


def _keep_text(draft: Transaction, found: document.Document) -> None:
    parts = found.parts
    draft.set_meta("head", parts.head if parts else None)
    draft.set_meta("tail", parts.tail if parts else "")


def _refuse_twins(rows: list[Any], place: RootPaths) -> None:
    seen: set[str] = set()
    for row in rows:
        for key in ("id", "name"):
            value = row.get(key)
            if value and f"{key}:{value}" in seen:
                raise refuse(place.yaml, row.lines.get(key), f"the {key} '{value}' stands here twice")
            seen.add(f"{key}:{value}")


def _known(connection: sqlite3.Connection) -> list[KnownRow]:
    found = connection.execute("SELECT id, data, written, block IS NOT NULL FROM sessions ORDER BY position")
    known = []
    for session_id, data, written, has_block in found:
        now = json.loads(data)
        known.append(
            KnownRow(session_id, now, json.loads(written) if written else (now if has_block else None))
        )
    return known


def _forgotten(connection: sqlite3.Connection) -> list[Row]:
    return [json.loads(written) for (written,) in connection.execute("SELECT written FROM forgotten")]


def _action(now: float) -> Action:
    return {"by": "user", "verb": "edit", "at_epoch": int(now)}


def _differing(before: Any, after: Any) -> set[str]:
    return {key for key in {*before, *after} if before.get(key) != after.get(key)} - {
        "last_action",
        "version",
    }
