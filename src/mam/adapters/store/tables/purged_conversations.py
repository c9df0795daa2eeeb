"""Removes what names the conversations of a purged session, in the registry or in a copy of it.

A copy of an older schema is changed as well, so columns that came later are looked for. A text that somebody
sent stays as it is, and a fork keeps the id of the conversation from which it was made.
"""

from __future__ import annotations

import json

from mam.adapters.store.rows_and_log import dump
from mam.core.session_row import is_own_id_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from typing import Any

    from mam.core.session_row import Row

# A message that is for one conversation is for no other one after the purge, so this is the name of none.
_PURGED = "purged"
# A shorter id could be a part of other words.
_SURELY_AN_ID = 8


def erase(connection: sqlite3.Connection, row: Row) -> set[str]:
    """Remove what names a conversation of a session beside its row; return the ids of these conversations.

    `row` is its row before the purge, which says which conversations it has had. What was typed for its
    messages stays, so that none of them is typed again.
    """
    session_id = row["id"]
    columns = {table: _columns(connection, table) for table in ("messages", "members", "drifts")}
    names = {*_of_row(row), *_of_evidence(connection, session_id)}
    connection.execute("DELETE FROM evidence WHERE session_id=?", (session_id,))
    names |= _erase_in_messages(connection, session_id, columns["messages"])
    names.discard(_PURGED)
    if "conversation" in columns["members"]:
        connection.executemany(
            "UPDATE members SET conversation=NULL WHERE session_id=? AND conversation=?",
            [(session_id, name) for name in names],
        )
    long = [name for name in names if len(name) >= _SURELY_AN_ID]
    if columns["drifts"]:
        # The next pass finds anew what lasts.
        connection.executemany("DELETE FROM drifts WHERE instr(data, ?)", [(name,) for name in long])
    _erase_in_log(connection, session_id, names)
    return names


def without(value: Any, names: Iterable[str]) -> Any:
    """Return a document without these ids: `*` stands for one that is a part of a text, such as a path."""
    names = set(names)
    if isinstance(value, dict):
        return {key: without(inner, names) for key, inner in value.items() if key not in names}
    if isinstance(value, list):
        return [without(inner, names) for inner in value]
    if not isinstance(value, str):
        return value
    if value in names:
        return None
    for name in names:
        if len(name) >= _SURELY_AN_ID:
            value = value.replace(name, "*")
    return value


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}


def _of_row(row: Row) -> set[str]:
    own = {value for key, value in row.items() if is_own_id_field(key)}
    listed = {entry.get("id") for entry in row.get("conversations") or []}
    return {name for name in own | listed if isinstance(name, str) and name}


def _of_evidence(connection: sqlite3.Connection, session_id: str) -> set[str]:
    documents = connection.execute("SELECT data FROM evidence WHERE session_id=?", (session_id,))
    named = {_document(data).get("conversation") for (data,) in documents}
    return {name for name in named if isinstance(name, str) and name}


def _erase_in_messages(connection: sqlite3.Connection, session_id: str, columns: set[str]) -> set[str]:
    """Remove the names of conversations from the messages of a session; return them."""
    names: set[str] = set()
    if "conversation" in columns:
        query = "SELECT DISTINCT conversation FROM messages WHERE session_id=? AND conversation NOT NULL"
        names |= {name for (name,) in connection.execute(query, (session_id,)) if isinstance(name, str)}
        connection.execute(
            "UPDATE messages SET conversation=? WHERE session_id=? AND conversation NOT NULL",
            (_PURGED, session_id),
        )
    if "typed" in columns:
        query = "SELECT seq, typed FROM messages WHERE session_id=? AND typed NOT NULL"
        for seq, text in connection.execute(query, (session_id,)).fetchall():
            typed = _document(text)
            if typed.get("conversation"):
                names.add(str(typed["conversation"]))
                # The launch alone says then into what it was typed.
                cleaned = json.dumps({**typed, "conversation": ""})
                connection.execute("UPDATE messages SET typed=? WHERE seq=?", (cleaned, seq))
        connection.execute(
            "UPDATE messages SET looked=NULL WHERE session_id=? AND looked NOT NULL", (session_id,)
        )
    return names


def _erase_in_log(connection: sqlite3.Connection, session_id: str, names: set[str]) -> None:
    entries = connection.execute("SELECT seq, reason, detail FROM log WHERE session_id=?", (session_id,))
    for seq, reason, detail in entries.fetchall():
        if any(name in f"{reason} {detail}" for name in names):
            cleaned = without(reason, names), dump(without(_document(detail), names))
            connection.execute("UPDATE log SET reason=?, detail=? WHERE seq=?", (*cleaned, seq))


def _document(text: Any) -> dict[str, Any]:
    """Return the document in a column; an empty one for what mam has not written."""
    try:
        document = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
