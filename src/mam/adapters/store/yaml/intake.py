"""Reads the YAML file into the database: a registry of another program, or an edit of a person."""

from __future__ import annotations

import json
import os

from mam.adapters.store import database
from mam.adapters.store.root_paths import fingerprint
from mam.adapters.store.rows_and_log import POSSIBLY_SHOWN, dump, new_session_id
from mam.adapters.store.yaml import document, yaml_text
from mam.core import registry_hand_edits
from mam.core.errors import EditRefused, RegistryCorrupt, Unavailable
from mam.core.message_rules import MessageState
from mam.core.registry_hand_edits import KnownRow, refuse
from mam.core.row_checks import flaws
from mam.core.session_row import with_all_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.root_paths import RootPaths
    from mam.adapters.store.rows_and_log import Transaction
    from mam.core.registry_hand_edits import StatusEdits
    from mam.core.session_row import Action, Row


def read_file(paths: RootPaths, *, is_recorded: bool) -> document.Document | None:
    """Return the content of the file with checked rows; None without content, which is never an edit.

    `is_recorded` tells whether the database holds the sessions. If it does not, the file is the only copy,
    and the hint of an error does not tell anybody to move it away.
    """
    try:
        return _checked_content(paths)
    except (RegistryCorrupt, EditRefused) as error:
        if not is_recorded:
            error.hint = _way_out_without_record(paths)
        raise


def _way_out_without_record(paths: RootPaths) -> str:
    backup = f"{paths.yaml}.bak"
    if os.path.exists(backup):
        return f"correct the line, or compare with {backup}; keep the file: mam has not recorded it yet"
    return "correct the line; keep the file: mam has not recorded it yet"


def _checked_content(paths: RootPaths) -> document.Document | None:
    try:
        with database.errors(paths.yaml), open(paths.yaml, "rb") as file:
            text = file.read(yaml_text.LARGEST + 1)
    except Unavailable as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    content = document.read(text, paths.yaml)
    for row in content.rows if content else ():
        for field, reason in flaws(row):
            raise refuse(
                paths.yaml, getattr(row, "lines", {}).get(field) or getattr(row, "line", None), reason
            )
    _refuse_duplicates(content.rows if content else [], paths)
    return content


def take_in(
    transaction: Transaction, paths: RootPaths, confirm: Callable[[Row, str], bool | None] | None
) -> None:
    """Record the content of the file in the database, or raise and change nothing."""
    file = fingerprint(paths.yaml)
    has_rows = bool(transaction.rows())
    is_recorded = has_rows or transaction.meta("file") is not None
    content = read_file(paths, is_recorded=is_recorded)
    if content is None or (has_rows and not content.has_list()):
        return
    if not is_recorded:
        _import(transaction, content)
    else:
        _edit(transaction, paths, content, confirm or (lambda _row, _status: None))
    transaction.set_meta("file", file)


def preview(
    connection: sqlite3.Connection, paths: RootPaths, rows: list[Row], now: float
) -> tuple[list[Row], StatusEdits | None]:
    """Return the rows as the file would change them, and the statuses, which mam must confirm first."""
    content = read_file(paths, is_recorded=True)
    if content is None or (rows and not content.has_list()):
        return rows, None
    known_rows = _known_rows(connection)
    plan = registry_hand_edits.plan_edit(
        known_rows, _forgotten(connection), content.rows, path=paths.yaml, complete=not content.is_cut
    )
    by_id = {row["id"]: row for row in rows}
    edits = registry_hand_edits.StatusEdits(plan, by_id, _action(now), paths.yaml) if plan.claims else None
    plan.claims = []
    changed = registry_hand_edits.take_in(
        plan, by_id, _action(now), path=paths.yaml, confirm=lambda _row, _status: None
    )
    kept = [row for row in rows if row["id"] not in plan.removals]
    return [with_all_fields(changed.get(row["id"]) or row) for row in kept], edits


def _import(transaction: Transaction, content: document.Document) -> None:
    blocks = content.parts.blocks if content.parts else [None] * len(content.rows)
    for number, (row, block) in enumerate(zip(content.rows, blocks, strict=True), 1):
        session_id = row.get("id") or new_session_id()
        complete = with_all_fields(row, session_id)
        transaction.connection.execute(
            "INSERT INTO sessions VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
            (
                session_id,
                row["name"],
                row["status"],
                number,
                complete["version"],
                dump(complete),
                dump(row),
                block,
            ),
        )
    transaction.set_meta("identities", content.identities)
    transaction.set_meta("identities_written", content.identities)
    transaction.set_meta("extra", content.extra)
    _keep_text(transaction, content)
    transaction.log("user", "import", None, sessions=len(content.rows))
    transaction.note_change()


def _edit(
    transaction: Transaction,
    paths: RootPaths,
    content: document.Document,
    confirm: Callable[[Row, str], bool | None],
) -> None:
    known_rows = _known_rows(transaction.connection)
    plan = registry_hand_edits.plan_edit(
        known_rows,
        _forgotten(transaction.connection),
        content.rows,
        path=paths.yaml,
        complete=not content.is_cut,
    )
    shown_identities = [
        transaction.identities(),
        transaction.meta("identities_written") or {},
        *(transaction.meta(POSSIBLY_SHOWN) or {}).get("identities", ()),
    ]
    if content.identities not in shown_identities:
        raise refuse(paths.yaml, None, "'agent_identities' was changed, and only mam writes it")
    by_id = {known_row.id: known_row.now for known_row in known_rows}
    changed = registry_hand_edits.take_in(
        plan, by_id, _action(transaction.now), path=paths.yaml, confirm=confirm
    )
    for session_id, row in changed.items():
        if row is None:
            _forget(transaction, by_id[session_id])
        else:
            transaction.put(row)
            transaction.log(
                "user", "edit", row, "edited by hand", fields=sorted(_differing(by_id[session_id], row))
            )
    for position, session_id in enumerate(plan.order, 1):
        transaction.connection.execute("UPDATE sessions SET position=? WHERE id=?", (position, session_id))
    _keep_blocks(transaction, content, plan)
    _note_shown(transaction, content)
    # What the file shows is recorded now.
    transaction.connection.execute("DELETE FROM meta WHERE key=?", (POSSIBLY_SHOWN,))
    transaction.set_meta("extra", content.extra)
    _keep_text(transaction, content)


def _forget(transaction: Transaction, row: Row) -> None:
    """Remove a session that a person has removed from the file; the log tells what its messages came to."""
    why = "removed from the file by hand"
    unended = "SELECT id, state FROM messages WHERE session_id=? AND state IN ('held', 'typing', 'parked')"
    for message_id, state in transaction.connection.execute(unended, (row["id"],)).fetchall():
        end = MessageState.UNCONFIRMED if state == MessageState.TYPING else MessageState.FAILED
        transaction.log("user", "send", row, f"the session was {why}", message=message_id, state=end)
    transaction.remove(row["id"])
    transaction.log("user", "forget", row, why)


def _keep_blocks(
    transaction: Transaction, content: document.Document, plan: registry_hand_edits.Plan
) -> None:
    """Store the text of unchanged rows, so that a new comment in one of them stays."""
    if content.parts is None:
        transaction.connection.execute(
            "UPDATE sessions SET block=NULL,"
            " written=coalesce(written, CASE WHEN block IS NULL THEN NULL ELSE data END)"
        )
        transaction.note_change()
        return
    blocks = dict(zip(map(_key, content.rows), content.parts.blocks, strict=True))
    touched = {session_id for session_id, _, _ in plan.claims} | set(plan.changes)
    for known_row in _known_rows(transaction.connection):
        block = blocks.get(_key(known_row.written or known_row.now))
        if block is not None and known_row.id not in touched:
            transaction.connection.execute(
                "UPDATE sessions SET block=? WHERE id=? AND block IS NOT NULL", (block, known_row.id)
            )


def _note_shown(transaction: Transaction, content: document.Document) -> None:
    """Record what the file shows of the rows that it is still to be updated with.

    The next edit is compared with that. It may be newer than what was recorded last: mam may have written
    the file and died before it recorded that.
    """
    rows = {_key(row): row for row in content.rows}
    for known_row in _known_rows(transaction.connection):
        row = rows.get(_key(known_row.written or known_row.now))
        if row is not None:
            transaction.connection.execute(
                "UPDATE sessions SET written=? WHERE id=? AND block IS NULL", (dump(row), known_row.id)
            )


def _key(row: Row) -> str:
    return row.get("id") or row["name"]


def _keep_text(transaction: Transaction, content: document.Document) -> None:
    parts = content.parts
    transaction.set_meta("head", parts.head if parts else None)
    transaction.set_meta("tail", parts.tail if parts else "")


def _refuse_duplicates(rows: list[Any], paths: RootPaths) -> None:
    values: set[str] = set()
    for row in rows:
        for key in ("id", "name"):
            value = row.get(key)
            if value and f"{key}:{value}" in values:
                raise refuse(paths.yaml, row.lines.get(key), f"the {key} '{value}' is in the file twice")
            values.add(f"{key}:{value}")


def _known_rows(connection: sqlite3.Connection) -> list[KnownRow]:
    rows = connection.execute("SELECT id, data, written, block IS NOT NULL FROM sessions ORDER BY position")
    kept = connection.execute("SELECT value FROM meta WHERE key=?", (POSSIBLY_SHOWN,)).fetchone()
    possibly_shown = json.loads(kept[0]).get("rows", {}) if kept else {}
    known_rows = []
    for session_id, data, written, has_block in rows:
        now = json.loads(data)
        known_rows.append(
            KnownRow(
                session_id,
                now,
                json.loads(written) if written else (now if has_block else None),
                possibly_shown.get(session_id, ()),
            )
        )
    return known_rows


def _forgotten(connection: sqlite3.Connection) -> list[Row]:
    return [json.loads(written) for (written,) in connection.execute("SELECT written FROM forgotten")]


def _action(now: float) -> Action:
    return {"by": "user", "verb": "edit", "at_epoch": int(now)}


def _differing(before: Any, after: Any) -> set[str]:
    return {key for key in {*before, *after} if before.get(key) != after.get(key)} - {
        "last_action",
        "version",
    }
