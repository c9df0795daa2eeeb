"""Messages to sessions, durable from before the first key until after the last look."""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.transaction import Transaction
    from mam.core.message import MessageState

_FIELDS = (
    "id",
    "session_id",
    "sender",
    "text",
    "is_command",
    "wanted",
    "state",
    "reason",
    "evidence",
    "carrier",
    "attempts",
    "owner",
    "before",
    "conversation",
    "added",
    "created_at",
    "changed_at",
)
_KEPT = 1000
_AHEAD_SECONDS = 60.0


class Message:
    """One message as it stands."""

    id: str
    session_id: str
    sender: str
    text: str
    is_command: bool
    wanted: str
    state: MessageState
    reason: str | None
    evidence: str | None
    carrier: str | None
    attempts: int
    owner: dict[str, Any] | None
    before: int | None
    conversation: str | None
    added: str | None
    created_at: float
    changed_at: float

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Take a row of the table."""
        facts = dict(zip(_FIELDS, values, strict=True))
        facts["owner"] = json.loads(facts["owner"]) if facts["owner"] else None
        facts["is_command"] = bool(facts["is_command"])
        self.__dict__.update(facts)


def new_id() -> str:
    """Return the id of a message that is to be sent."""
    return f"m_{os.urandom(4).hex()}"


def add(draft: Transaction, message: dict[str, Any]) -> Message:
    """Record a message; the same id twice is the same message."""
    known = find(draft, message["id"])
    if known is not None:
        return known
    names = ("id", "session_id", "sender", "text", "is_command", "wanted", "state", "reason", "conversation")
    draft.connection.execute(
        f"INSERT INTO messages({', '.join(names)}, attempts, created_at, changed_at)"
        f" VALUES({', '.join('?' * len(names))}, 0, ?, ?)",
        (*(message[name] for name in names), draft.now, draft.now),
    )
    draft.connection.execute(
        "DELETE FROM messages WHERE state NOT IN ('held', 'typing')"
        " AND seq <= (SELECT max(seq) FROM messages) - ?",
        (_KEPT,),
    )
    found = find(draft, message["id"])
    assert found is not None
    return found


def update(draft: Transaction, message_id: str, **fields: Any) -> Message:
    """Change what is known of a message."""
    if "owner" in fields:
        fields["owner"] = json.dumps(fields["owner"]) if fields["owner"] else None
    fields["changed_at"] = draft.now
    names = ", ".join(f"{name}=?" for name in fields)
    draft.connection.execute(
        f"UPDATE messages SET {names} WHERE id=?",  # noqa: S608  (our names)
        (*fields.values(), message_id),
    )
    found = find(draft, message_id)
    assert found is not None
    return found


def find(draft: Transaction, message_id: str) -> Message | None:
    """Return one message."""
    found = draft.connection.execute(f"{_SELECT} WHERE id=?", (message_id,)).fetchone()
    return Message(found) if found else None


def open_of(draft: Transaction, session_id: str | None = None) -> list[Message]:
    """Return what is held or being typed, in order; of one session, or of all."""
    which = "" if session_id is None else " AND session_id=?"
    values = () if session_id is None else (session_id,)
    found = draft.connection.execute(
        f"{_SELECT} WHERE state IN ('held', 'typing'){which} ORDER BY seq", values
    )
    return [Message(values) for values in found]


def has_open(draft: Transaction) -> bool:
    """Tell whether anything is held or being typed; the cheapest look there is."""
    found = draft.connection.execute("SELECT 1 FROM messages WHERE state IN ('held', 'typing') LIMIT 1")
    return found.fetchone() is not None


def listed(
    draft: Transaction, *, session_id: str | None = None, sender: str | None = None, limit: int = 50
) -> list[Message]:
    """Return the last messages to a session, or from a sender, oldest first."""
    field, value = ("session_id", session_id) if session_id else ("sender", sender)
    found = draft.connection.execute(f"{_SELECT} WHERE {field}=? ORDER BY seq DESC LIMIT ?", (value, limit))
    return [Message(values) for values in found.fetchall()][::-1]


def was_typed_lately(draft: Transaction, message: Message, since: float) -> bool:
    """Tell whether the same words were typed into the same session since then, as another message."""
    query = (
        "SELECT 1 FROM messages WHERE session_id=? AND id!=? AND attempts > 0 AND changed_at >= ? AND text=?"
    )
    values = (message.session_id, message.id, since, message.text)
    return draft.connection.execute(query, values).fetchone() is not None


def was_taken_lately(draft: Transaction, session_id: str, since: float) -> bool:
    """Tell whether a session took a message since then."""
    query = (
        "SELECT 1 FROM messages WHERE session_id=? AND state IN ('submitted', 'queued') AND changed_at >= ?"
    )
    return draft.connection.execute(query, (session_id, since)).fetchone() is not None


def count_since(
    draft: Transaction, sender: str, session_id: str, since: float, text: str | None = None
) -> int:
    """Return how many messages one session wrote to another since then, or how many with these words.

    Words that were taken back, or could not be typed, may be sent again. What is from the future was written
    before the clock was put back.
    """
    same = "" if text is None else " AND text=? AND state != 'failed'"
    values = (sender, session_id, since, draft.now + _AHEAD_SECONDS, *(() if text is None else (text,)))
    which = f"sender=? AND session_id=? AND created_at BETWEEN ? AND ?{same}"
    query = f"SELECT count(*) FROM messages WHERE {which}"  # noqa: S608  (our names)
    return int(draft.connection.execute(query, values).fetchone()[0])


_SELECT = f"SELECT {', '.join(_FIELDS)} FROM messages"  # noqa: S608  (our names)
