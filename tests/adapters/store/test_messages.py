"""The table of messages keeps the code of a reason beside its sentence."""

from __future__ import annotations

import sqlite3

from tests.adapters.store.making import Store

from mam.adapters.store import schema
from mam.adapters.store.tables import messages
from mam.core.message_rules import NOT_TRIED, MessageState, Reason, ReasonCode

NEW = {
    "id": "m_1",
    "session_id": "s_1",
    "sender": "user",
    "text": "hello",
    "is_command": False,
    "wanted": "ready",
    "state": MessageState.HELD,
    "reason": NOT_TRIED,
    "conversation": None,
}


def test_a_reason_is_read_with_its_code(tmp_path) -> None:
    registry = Store(tmp_path).registry
    message = registry.note(lambda transaction: messages.add(transaction, NEW))
    assert (message.reason, message.reason_code) == ("it waits its turn", ReasonCode.NOT_TRIED)
    assert message.reason.code == ReasonCode.NOT_TRIED

    draft = Reason("a draft is in its box", ReasonCode.DRAFT)
    message = registry.note(lambda transaction: messages.update(transaction, "m_1", reason=draft))
    assert (message.reason, message.reason_code) == (draft, ReasonCode.DRAFT)

    message = registry.note(lambda transaction: messages.update(transaction, "m_1", reason="withdrawn"))
    assert (message.reason, message.reason_code) == ("withdrawn", None), "the code of another reason is gone"

    message = registry.note(lambda transaction: messages.update(transaction, "m_1", attempts=1))
    assert message.reason == "withdrawn"


def test_a_message_that_an_older_mam_had_not_tried_has_its_code() -> None:
    with_code = next(at for at, step in enumerate(schema.STATE_MIGRATIONS) if "reason_code" in step)
    connection = sqlite3.connect(":memory:")
    for step in schema.STATE_MIGRATIONS[:with_code]:
        connection.executescript(step)
    for message_id, reason in (("m_1", "it waits its turn"), ("m_2", "a draft is in its box")):
        connection.execute(
            "INSERT INTO messages(id, session_id, sender, text, is_command, wanted, state, reason, attempts,"
            " created_at, changed_at) VALUES(?, 's_1', 'user', 'hello', 0, 'ready', 'held', ?, 0, 0, 0)",
            (message_id, reason),
        )
    connection.executescript(schema.STATE_MIGRATIONS[with_code])
    codes = dict(connection.execute("SELECT id, reason_code FROM messages"))
    connection.close()
    assert codes == {"m_1": ReasonCode.NOT_TRIED, "m_2": None}
