"""The table of messages: each is recorded before mam types its first key."""

from __future__ import annotations

import json
import os

from mam.core import record_limits
from mam.core.job_rules import is_message_of, task_message_id
from mam.core.message_rules import MessageState, Reason, ReasonCode
from mam.core.safe_text import one_line
from mam.core.session_row import launch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.core.session_row import Row

_FIELDS = (
    "id",
    "session_id",
    "sender",
    "text",
    "is_command",
    "wanted",
    "state",
    "reason",
    "reason_code",
    "reason_code_at",
    "evidence",
    "carrier",
    "attempts",
    "owner",
    "before",
    "conversation",
    "added",
    "typed",
    "looked",
    "created_at",
    "changed_at",
)
_GIVEN = ("id", "session_id", "sender", "text", "is_command", "wanted", "state")
_OPEN = "state IN ('held', 'typing')"
_UNENDED = "state IN ('held', 'typing', 'parked')"
# Only of these mam knows what it typed, and a transcript can show that.
_UNCONFIRMED = "state='unconfirmed' AND typed IS NOT NULL AND NOT is_command"
# The agent has it in its queue. Its record shows when its turn begins.
_QUEUED = "state='queued' AND typed IS NOT NULL AND NOT is_command"
_AWAITS_PROOF = f"(({_UNCONFIRMED}) OR ({_QUEUED}))"
_KEPT = 1000
_AHEAD_SECONDS = 60.0
# The hook of a message may come so much later that it could be that of another one with the same text.
REPEATED_SECONDS = 60.0


class Typed:
    """What was typed for a message: the text, when, in which launch, and into which conversation."""

    __slots__ = ("at", "conversation", "launch", "text")

    def __init__(self, text: str, at: float, conversation: str, launch: str) -> None:
        self.text = text
        self.at = at
        self.conversation = conversation
        self.launch = launch


class Message:
    """One message. One with a `flaw` has a record that mam does not write; it cannot be delivered."""

    id: str
    session_id: str
    sender: str
    text: str
    is_command: bool
    wanted: str
    state: MessageState
    reason: Reason | None
    reason_code: str | None
    evidence: str | None
    carrier: str | None
    attempts: int
    owner: dict[str, Any] | None
    before: int | None
    conversation: str | None
    added: str | None
    typed: Typed | None
    # How far the transcript of each conversation reached when mam looked there for this message last.
    looked: dict[str, int]
    created_at: float
    changed_at: float
    flaw: str | None

    def __init__(self, values: tuple[Any, ...]) -> None:
        """Store the values of a row of the table."""
        facts = dict(zip(_FIELDS, values, strict=True))
        facts["is_command"] = bool(facts["is_command"])
        self.flaw = _make_sound(facts)
        typed = facts["typed"] or {}
        is_current = typed.pop("attempt", None) == facts["attempts"]
        facts["typed"] = Typed(**typed) if is_current else None
        if facts.pop("reason_code_at") != facts["changed_at"]:
            # An older mam has changed the message since, and knows no codes.
            facts["reason_code"] = None
        if facts["reason"] is not None:
            facts["reason"] = Reason(facts["reason"], facts["reason_code"])
        self.__dict__.update(facts)


_KINDS: dict[str, type] = {
    "text": str,
    "sender": str,
    "attempts": int,
    "created_at": float,
    "changed_at": float,
}


def _make_sound(facts: dict[str, Any]) -> str | None:
    """Parse the documents among the columns of a message; replace what is wrong, and return what that was."""
    flaw = None
    for name, kind in _KINDS.items():
        if not isinstance(facts[name], kind):
            flaw = f"its {name} cannot be {one_line(repr(facts[name]), 60)}"
            facts[name] = kind()
    typed_keys = {*Typed.__slots__, "attempt"}
    for name in ("owner", "looked", "typed"):
        try:
            document = json.loads(facts[name]) if facts[name] else {}
        except (ValueError, TypeError, RecursionError):
            document = None
        is_whole = name != "typed" or not document or {*document} == typed_keys
        if not isinstance(document, dict) or not is_whole:
            document, flaw = {}, f"its {name} is not what mam writes"
        facts[name] = document
    facts["owner"] = facts["owner"] or None
    return flaw


def new_id() -> str:
    """Return the id for a new message."""
    return f"m_{os.urandom(4).hex()}"


def add(transaction: Transaction, message: dict[str, Any]) -> Message:
    """Record a message; if the id exists, return that message. Delete all but the newest ended ones."""
    existing = find(transaction, message["id"])
    if existing is not None:
        return existing
    message = _with_reason_code(transaction, message)
    record_limits.check(sender=message["sender"], text=message["text"], wanted=message["wanted"])
    names = (*_GIVEN, "reason", "reason_code", "reason_code_at", "conversation")
    transaction.connection.execute(
        f"INSERT INTO messages({', '.join(names)}, attempts, created_at, changed_at)"
        f" VALUES({', '.join('?' * len(names))}, 0, ?, ?)",
        (*(message[name] for name in names), transaction.now, transaction.now),
    )
    transaction.connection.execute(
        f"DELETE FROM messages WHERE NOT {_UNENDED} AND seq <= (SELECT max(seq) FROM messages) - ?",  # noqa: S608
        (_KEPT,),
    )
    recorded = find(transaction, message["id"])
    assert recorded is not None
    return recorded


def update(transaction: Transaction, message_id: str, **fields: Any) -> Message:
    """Change fields of a message."""
    if "owner" in fields:
        fields["owner"] = json.dumps(fields["owner"]) if fields["owner"] else None
    if "typed" in fields:
        typed = {name: getattr(fields["typed"], name) for name in Typed.__slots__}
        fields["typed"] = json.dumps({**typed, "attempt": fields["attempts"]})
    if "reason" in fields:
        fields = _with_reason_code(transaction, fields)
    fields["changed_at"] = transaction.now
    names = ", ".join(f"{name}=?" for name in fields)
    transaction.connection.execute(
        f"UPDATE messages SET {names} WHERE id=?",  # noqa: S608  (names of columns)
        (*fields.values(), message_id),
    )
    updated = find(transaction, message_id)
    assert updated is not None
    return updated


def _with_reason_code(transaction: Transaction, fields: dict[str, Any]) -> dict[str, Any]:
    """Add the code of the reason; a reason without a code removes the code of the one before."""
    reason = fields["reason"]
    code = reason.code if isinstance(reason, Reason) else None
    added = {"reason_code": code, "reason_code_at": transaction.now}
    return {**fields, "reason": None if reason is None else record_limits.sentence(str(reason)), **added}


def find(transaction: Transaction, message_id: str) -> Message | None:
    """Return one message."""
    row = transaction.connection.execute(f"{_SELECT} WHERE id=?", (message_id,)).fetchone()
    return Message(row) if row else None


def open_of(transaction: Transaction, session_id: str | None = None) -> list[Message]:
    """Return the messages that are held or being typed, in order; of one session, or of all."""
    which = "" if session_id is None else " AND session_id=?"
    values = () if session_id is None else (session_id,)
    rows = transaction.connection.execute(f"{_SELECT} WHERE {_OPEN}{which} ORDER BY seq", values)
    return [Message(values) for values in rows]


def first_open(transaction: Transaction, session_id: str) -> Message | None:
    """Return the message of a session that comes next; no other text is read, and there may be many."""
    row = transaction.connection.execute(
        f"{_SELECT} WHERE {_OPEN} AND session_id=? ORDER BY seq LIMIT 1", (session_id,)
    ).fetchone()
    return Message(row) if row else None


def open_without_text(transaction: Transaction, session_id: str) -> list[Message]:
    """Return the open messages of a session in order, without their texts and without what was typed.

    A message may have a megabyte, and many may be held.
    """
    left_out = {"text": "''", "typed": "NULL"}
    fields = ", ".join(left_out.get(name, name) for name in _FIELDS)
    rows = transaction.connection.execute(
        f"SELECT {fields} FROM messages WHERE {_OPEN} AND session_id=? ORDER BY seq",  # noqa: S608
        (session_id,),
    )
    return [Message(values) for values in rows]


def unended_of(transaction: Transaction, session_id: str) -> list[Message]:
    """Return the messages of a session that are held, being typed or parked, in order."""
    rows = transaction.connection.execute(
        f"{_SELECT} WHERE {_UNENDED} AND session_id=? ORDER BY seq", (session_id,)
    )
    return [Message(values) for values in rows]


def parked(transaction: Transaction) -> list[Message]:
    """Return the parked messages of every session, in order."""
    return listed(transaction, only_parked=True, limit=-1)


def has_work(transaction: Transaction) -> bool:
    """Tell whether any message is to be delivered, or awaits a proof, with the cheapest query."""
    query = f"SELECT 1 FROM messages WHERE {_OPEN} OR {_AWAITS_PROOF} LIMIT 1"  # noqa: S608
    return transaction.connection.execute(query).fetchone() is not None


def disown_all(transaction: Transaction) -> None:
    """Record that no process types a message any more, so that the next delivery looks for the proofs."""
    transaction.connection.execute("UPDATE messages SET owner=NULL WHERE state='typing'")


def note_look(transaction: Transaction, message_id: str, looked: dict[str, int]) -> None:
    """Record how far the transcripts reached that do not show a message yet."""
    transaction.connection.execute(
        "UPDATE messages SET looked=? WHERE id=?", (json.dumps(looked), message_id)
    )


def unconfirmed(transaction: Transaction, session_id: str | None = None) -> list[Message]:
    """Return the messages that a later proof can still confirm, in order; of one session, or of all."""
    return _typed(transaction, _UNCONFIRMED, session_id)


def queued(transaction: Transaction, session_id: str) -> list[Message]:
    """Return the messages that a session had in its queue when mam looked last, in order."""
    return _typed(transaction, _QUEUED, session_id)


def awaiting_proof(transaction: Transaction, session_id: str | None = None) -> list[Message]:
    """Return the messages that are unconfirmed or queued, in order; of one session, or of all."""
    return _typed(transaction, _AWAITS_PROOF, session_id)


def _typed(transaction: Transaction, condition: str, session_id: str | None) -> list[Message]:
    which = "" if session_id is None else " AND session_id=?"
    rows = transaction.connection.execute(
        f"{_SELECT} WHERE {condition}{which} ORDER BY seq",
        () if session_id is None else (session_id,),
    )
    return [message for message in map(Message, rows) if message.typed is not None]


def count_ended_in_queue(transaction: Transaction, session_id: str, launch: str) -> int:
    """Return how many messages the agent of one launch of a session had in its queue when it ended."""
    return sum(
        message.reason_code == ReasonCode.ENDED_IN_QUEUE
        and message.typed is not None
        and message.typed.launch == launch
        for message in unconfirmed(transaction, session_id)
    )


def sessions_with_open(transaction: Transaction) -> list[str]:
    """Return the sessions with messages that are held or being typed, the longest waiting first."""
    return _sessions_with(transaction, _OPEN)


def sessions_with_unconfirmed(transaction: Transaction) -> list[str]:
    """Return the sessions with messages that a later proof can still confirm, the longest waiting first."""
    return _sessions_with(transaction, _UNCONFIRMED)


def sessions_awaiting_proof(transaction: Transaction) -> list[str]:
    """Return the sessions with messages that are unconfirmed or queued, the longest waiting first."""
    return _sessions_with(transaction, _AWAITS_PROOF)


def _sessions_with(transaction: Transaction, condition: str) -> list[str]:
    query = f"SELECT session_id FROM messages WHERE {condition} GROUP BY session_id ORDER BY min(seq)"  # noqa: S608
    return [session_id for (session_id,) in transaction.connection.execute(query)]


def last_typed(transaction: Transaction, session_id: str) -> Message | None:
    """Return the message that was typed into a session last, whatever became of it."""
    row = transaction.connection.execute(
        f"{_SELECT} WHERE session_id=? AND attempts > 0 ORDER BY seq DESC LIMIT 1", (session_id,)
    ).fetchone()
    return Message(row) if row else None


def with_same_text(transaction: Transaction, message: Message, since: float) -> list[Message]:
    """Return the other messages whose typed text is that of this one, typed into its session since then."""
    rows = transaction.connection.execute(
        f"{_SELECT} WHERE session_id=? AND id!=? AND typed IS NOT NULL AND NOT is_command AND text=?"
        " AND state != 'failed' ORDER BY seq",
        (message.session_id, message.id, message.text),
    )
    return [
        other
        for other in map(Message, rows)
        if other.typed is not None
        and message.typed is not None
        and other.typed.text == message.typed.text
        and other.typed.at >= since
    ]


def correct(transaction: Transaction, message: Message, evidence: str) -> None:
    """Make an unconfirmed or queued message submitted, because its proof has come."""
    news = "its turn began" if message.state == MessageState.QUEUED else "the proof came later"
    update(transaction, message.id, state=MessageState.SUBMITTED, reason=None, evidence=evidence, looked=None)
    transaction.log(
        message.sender,
        "send",
        transaction.get(message.session_id),
        news,
        message=message.id,
        state=MessageState.SUBMITTED,
        evidence=evidence,
    )


def correct_by_prompt(transaction: Transaction, row: Row, prompt: str, at: float) -> None:
    """Make the message submitted whose text a hook of this launch reports, if only one has that text."""
    for message in unconfirmed(transaction, row["id"]):
        typed = message.typed
        if (
            typed is not None
            and typed.at <= at
            and typed.launch == launch_of(row)
            and typed.text.strip() == prompt.strip()
            # The hook may come from the moment at which the agent put the text into its queue.
            and message.reason_code != ReasonCode.ENDED_IN_QUEUE
            and not was_typed_lately(transaction, message, typed.at - REPEATED_SECONDS)
        ):
            correct(transaction, message, "hook")
            return


def listed(
    transaction: Transaction,
    *,
    session_id: str | None = None,
    sender: str | None = None,
    only_parked: bool = False,
    limit: int = 50,
) -> list[Message]:
    """Return the last messages, oldest first: to a session, from a sender, or only parked ones."""
    filters = {"session_id": session_id, "sender": sender, "state": "parked" if only_parked else None}
    given = {field: value for field, value in filters.items() if value is not None}
    which = " AND ".join(f"{field}=?" for field in given)
    rows = transaction.connection.execute(
        f"{_SELECT} WHERE {which} ORDER BY seq DESC LIMIT ?", (*given.values(), limit)
    )
    return [Message(values) for values in rows.fetchall()][::-1]


def was_typed_lately(transaction: Transaction, message: Message, since: float) -> bool:
    """Tell whether another message with the same text was typed into the same session since then."""
    query = (
        "SELECT 1 FROM messages WHERE session_id=? AND id!=? AND attempts > 0 AND changed_at >= ? AND text=?"
    )
    values = (message.session_id, message.id, since, message.text)
    return transaction.connection.execute(query, values).fetchone() is not None


def was_taken_lately(transaction: Transaction, session_id: str, since: float) -> bool:
    """Tell whether a session took a message since then."""
    query = (
        "SELECT 1 FROM messages WHERE session_id=? AND state IN ('submitted', 'queued') AND changed_at >= ?"
    )
    return transaction.connection.execute(query, (session_id, since)).fetchone() is not None


def count_taken(transaction: Transaction, session_id: str, text: str, since: float) -> int:
    """Return how many messages with this text a session took since then."""
    query = (
        "SELECT count(*) FROM messages WHERE session_id=? AND text=?"
        " AND state IN ('submitted', 'queued') AND changed_at >= ?"
    )
    return int(transaction.connection.execute(query, (session_id, text, since)).fetchone()[0])


def count_since(
    transaction: Transaction, sender: str, session_id: str, since: float, text: str | None = None
) -> int:
    """Return how many messages one session sent to another since then, or how many with this text.

    A text that was withdrawn or could not be typed may be sent again, so failed messages do not count. A
    message from the future was recorded before the clock was set back; it does not count either.
    """
    same = "" if text is None else " AND text=? AND state != 'failed'"
    values = (sender, session_id, since, transaction.now + _AHEAD_SECONDS, *(() if text is None else (text,)))
    which = f"sender=? AND session_id=? AND created_at BETWEEN ? AND ?{same}"
    query = f"SELECT count(*) FROM messages WHERE {which}"  # noqa: S608  (names of columns)
    return int(transaction.connection.execute(query, values).fetchone()[0])


def settled(transaction: Transaction) -> list[tuple[str, float, int]]:
    """Return id, time of the last change and length of each message that has ended, newest first."""
    query = f"SELECT id, changed_at, length(text) FROM messages WHERE NOT {_UNENDED} ORDER BY seq DESC"  # noqa: S608
    return transaction.connection.execute(query).fetchall()


def unended_ids(transaction: Transaction) -> set[str]:
    """Return the ids of the messages that are held, being typed or parked."""
    query = f"SELECT id FROM messages WHERE {_UNENDED}"  # noqa: S608
    return {message_id for (message_id,) in transaction.connection.execute(query)}


def remove_settled(transaction: Transaction, message_ids: Sequence[str]) -> None:
    """Delete messages, unless one of them is open after all."""
    transaction.connection.executemany(
        f"DELETE FROM messages WHERE id=? AND NOT {_UNENDED}",  # noqa: S608
        [(message_id,) for message_id in message_ids],
    )


def remove_of_job(connection: sqlite3.Connection, job_id: str) -> None:
    """Delete the messages that carried the task of a job and its reminders; in a copy as well."""
    connection.executemany(
        "DELETE FROM messages WHERE id=?", [(name,) for name, _ in ids_of_job(connection, job_id)]
    )


def ids_of_job(connection: sqlite3.Connection, job_id: str) -> list[tuple[str, str]]:
    """Return the id and the session of each message that carried the task of a job, or a reminder of it."""
    prefix = task_message_id(job_id, 1)
    query = "SELECT id, session_id FROM messages WHERE substr(id, 1, ?)=?"
    found = connection.execute(query, (len(prefix), prefix)).fetchall()
    return [(name, session_id) for name, session_id in found if is_message_of(job_id, name)]


def ids_of(transaction: Transaction, session_id: str) -> list[str]:
    """Return the ids of all messages to a session."""
    query = "SELECT id FROM messages WHERE session_id=?"
    return [message_id for (message_id,) in transaction.connection.execute(query, (session_id,))]


def logged_end(transaction: Transaction, message: Message) -> tuple[MessageState, str | None] | None:
    """Return the state in which a message ended that is deleted by now, and why; None if the log lacks it."""
    query = (
        "SELECT json_extract(detail, '$.state'), reason FROM log WHERE session_id=? AND verb='send'"
        " AND CASE WHEN json_valid(detail) THEN json_extract(detail, '$.message') END=?"
        " ORDER BY seq DESC LIMIT 1"
    )
    end = transaction.connection.execute(query, (message.session_id, message.id)).fetchone()
    return None if end is None else (MessageState(end[0]), end[1])


_SELECT = f"SELECT {', '.join(_FIELDS)} FROM messages"  # noqa: S608  (names of columns)
