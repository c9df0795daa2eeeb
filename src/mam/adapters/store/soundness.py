"""Whether a database is whole: its pages, and the documents in its columns."""

from __future__ import annotations

from mam.adapters.store import database, schema
from mam.core.errors import RegistryCorrupt

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3

# The columns that hold JSON. A changed byte in one of them leaves the pages as they should be.
_DOCUMENTS = (
    *(("sessions", "data"), ("meta", "value"), ("intents", "data"), ("intents", "owner")),
    *(("messages", "typed"), ("messages", "owner"), ("jobs", "data"), ("job_events", "payload")),
    *(("members", "owner"), ("members", "words")),
)


def damage_of(path: str) -> RegistryCorrupt | None:
    """Return what is damaged in the database of a root; None if nothing is. It is only read."""
    try:
        connection = database.connect_to_read(path, schema.STATE_MIGRATIONS, schema.STATE_ADDITIONS)
        try:
            with database.errors(path):
                _check(connection, path)
        finally:
            connection.close()
    except RegistryCorrupt as error:
        return error
    return None


def _check(connection: sqlite3.Connection, path: str) -> None:
    (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise database.damaged(path, str(verdict).splitlines()[-1])
    for table, column in _DOCUMENTS:
        query = f"SELECT 1 FROM {table} WHERE {column} IS NOT NULL AND NOT json_valid({column}) LIMIT 1"  # noqa: S608
        if connection.execute(query).fetchone() is not None:
            raise database.damaged(path, f"a record of the table {table} is not readable")
    # Text that is not Unicode is found only by reading it.
    for (_data,) in connection.execute("SELECT data FROM sessions"):
        pass
