"""Whether a root's database, or the user state, is whole: pages, types of values, documents in columns."""

from __future__ import annotations

import json

from mam.adapters.store import checked_copy, database, schema
from mam.core.errors import RegistryCorrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence

# The columns that hold JSON, and of what type. A changed byte in one leaves the pages as they should be.
_DOCUMENTS: tuple[tuple[str, str, type], ...] = (
    *(("sessions", "data", dict), ("sessions", "written", dict), ("forgotten", "written", dict)),
    *(("meta", "value", object), ("log", "detail", dict), ("evidence", "data", dict)),
    *(("intents", "data", dict), ("intents", "owner", dict), ("drifts", "data", dict)),
    *(("messages", "typed", dict), ("messages", "owner", dict), ("messages", "looked", dict)),
    *(("jobs", "data", dict), ("job_events", "payload", dict), ("set_aside", "data", dict)),
    *(("members", "owner", dict), ("members", "words", list)),
)
_USER_DOCUMENTS: tuple[tuple[str, str, type], ...] = (
    *(("leases", "holder", dict), ("launches", "command", dict), ("launch_secrets", "process", dict)),
    ("meta", "value", object),
)
# What SQLite may hold in a column of a type. It takes a text in the place of a number.
_TYPES = {
    "TEXT": "'text', 'null'",
    "INTEGER": "'integer', 'null'",
    "REAL": "'real', 'integer', 'null'",
}


def damage_of(path: str) -> RegistryCorrupt | None:
    """Return what is damaged in the database of a root; None if nothing is. It is only read."""
    return _damage_of(path, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS, _DOCUMENTS)


def damage_of_user_state(path: str) -> RegistryCorrupt | None:
    """Return what is damaged in the database of the user state; None if nothing is. It is only read."""
    return _damage_of(path, schema.USER_MIGRATIONS, schema.USER_ADDITIONS, _USER_DOCUMENTS)


def _damage_of(
    path: str,
    migrations: Sequence[str],
    additions: Sequence[tuple[str, str, str]],
    documents: Sequence[tuple[str, str, type]],
) -> RegistryCorrupt | None:
    try:
        connection = database.connect_to_read(path, migrations, additions)
        try:
            with database.errors(path):
                _check(connection, path, documents)
        finally:
            connection.close()
    except RegistryCorrupt as error:
        return error
    return None


def _check(connection: sqlite3.Connection, path: str, documents: Sequence[tuple[str, str, type]]) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise database.damaged(path, str(verdict).splitlines()[-1])
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
    for (table,) in tables:
        if not table.startswith("sqlite_"):
            _check_types(connection, path, table)
    for table, column, kind in documents:
        query = f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL AND {column} != ''"  # noqa: S608
        for (text,) in connection.execute(query):
            if not _is_document(text, kind):
                raise _unreadable(path, table)


def _check_types(connection: sqlite3.Connection, path: str, table: str) -> None:
    """Raise RegistryCorrupt for a value of another type than that of its column: no verb expects one."""
    names = checked_copy.columns(connection, table)
    wrong = [
        f'typeof("{name}") NOT IN ({_TYPES[kind]})' for name, (kind, _) in names.items() if kind in _TYPES
    ]
    query = f'SELECT 1 FROM "{table}" NOT INDEXED WHERE {" OR ".join(wrong)} LIMIT 1'  # noqa: S608
    if wrong and connection.execute(query).fetchone() is not None:
        raise _unreadable(path, table)


def _is_document(text: object, kind: type) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), kind)
    except (ValueError, RecursionError):
        return False


def _unreadable(path: str, table: str) -> RegistryCorrupt:
    return database.damaged(path, f"a record of the table {table} is not readable")
