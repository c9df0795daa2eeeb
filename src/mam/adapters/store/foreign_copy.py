"""A copy in memory of a database that somebody else may have written: only rows that mam could have written.

Verbs read it as they read a database of their own, so no row of it may have another form. A row that is unfit
is left out and listed. In contrast to `checked_copy.copy_rows` this keeps what processes are doing, because a
root of this user that another machine changes is read in the same way.
"""

from __future__ import annotations

import json
import sqlite3

from mam.adapters.store import checked_copy, database, schema
from mam.adapters.store.checked_copy import CopyReport, Unfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Columns of tables that a restore does not take over, or drops, and that hold documents.
_DOCUMENTS = {"data": dict, "owner": dict, "written": dict, "words": list, "looked": dict}
_META_KINDS = {"identities": dict, "extra": dict, "servers": list}


class ForeignCopy(database.ImmutableConnection):
    """The copy. `report` says what was left out."""

    report: CopyReport


def connect(path: str) -> ForeignCopy:
    """Open a copy in memory of the sound rows of a database; nothing beside it changes."""
    source = database.connect_to_copy(path)
    try:
        with database.errors(path):
            return _checked(source)
    finally:
        source.close()


def _checked(source: sqlite3.Connection) -> ForeignCopy:
    source.text_factory = checked_copy.text_or_flaw
    (version,) = source.execute("PRAGMA user_version").fetchone()
    copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=ForeignCopy)
    copy.report = CopyReport()
    try:
        for statements in (*schema.STATE_MIGRATIONS, *(step for _, _, step in schema.STATE_ADDITIONS)):
            copy.executescript(statements)
        copy.execute("BEGIN")
        present = checked_copy.real_tables(source)
        tables = copy.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
        for (table,) in tables:
            if present.get(table) and not table.startswith("sqlite_"):
                _take(source, copy, table)
        copy.execute("COMMIT")
        # Who reads a newer schema has no verb for all of it.
        copy.execute(f"PRAGMA user_version={max(version, len(schema.STATE_MIGRATIONS)):d}")
        copy.execute("PRAGMA query_only=ON")
    except BaseException:
        copy.close()
        raise
    return copy


def _take(source: sqlite3.Connection, copy: ForeignCopy, table: str) -> None:
    expected, present = checked_copy.columns(copy, table), checked_copy.columns(source, table)
    names = [name for name in expected if name in present]
    for values in checked_copy.rows_of(source, table, names, copy.report):
        row = dict(zip(names, values, strict=True))
        key = row.get("id") or next(iter(row.values()), "")
        try:
            _check(table, row, expected)
            checked_copy.insert(copy, table, row)
        except (Unfit, sqlite3.IntegrityError) as error:
            reason = str(error) if isinstance(error, Unfit) else "it contradicts another row"
            copy.report.leave_out(table, key, reason)


def _check(table: str, row: dict[str, Any], expected: dict[str, tuple[str, bool]]) -> None:
    """Raise Unfit for a row that mam could not have written."""
    if table == "forgotten":
        if not _is_document(row["written"], dict):
            raise Unfit("written is not readable")
        return
    # They say what a process does, or what a file shows. A wrong one costs only itself.
    skipped = {name: row.pop(name) for name in checked_copy.SKIPPED.get(table, ()) if name in row}
    checked_copy.check_row(table, row, {name: kind for name, kind in expected.items() if name not in skipped})
    if table == "meta" and not _is_document(row["value"], _META_KINDS.get(row["key"], object)):
        raise Unfit("value is not readable")
    if table not in checked_copy.TABLES:
        for name in row.keys() & _DOCUMENTS:
            if not _is_document(row[name], _DOCUMENTS[name]):
                raise Unfit(f"{name} is not readable")
    for name, value in skipped.items():
        row[name] = value if _is_fit(name, value, is_text=expected[name][0] == "TEXT") else None


def _is_fit(name: str, value: object, *, is_text: bool) -> bool:
    if name in _DOCUMENTS:
        return _is_document(value, _DOCUMENTS[name])
    return isinstance(value, str) if is_text else type(value) is int


def _is_document(text: object, kind: type) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False
