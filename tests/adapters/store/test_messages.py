"""The table of messages keeps the code of a reason beside its sentence."""

from __future__ import annotations

import sqlite3

from tests.adapters.store.making import Store

from mam.adapters.store import database, schema
from mam.adapters.store.tables import messages
from mam.core.errors import ReadOnly
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


def older(path) -> sqlite3.Connection:
    """Return the database of an older mam, which has no codes."""
    connection = sqlite3.connect(path, isolation_level=None)
    for number, step in enumerate(schema.STATE_MIGRATIONS, 1):
        connection.executescript(f"{step};PRAGMA user_version={number}")
    return connection


def insert(connection, message_id, reason) -> None:
    connection.execute(
        "INSERT INTO messages(id, session_id, sender, text, is_command, wanted, state, reason, attempts,"
        " created_at, changed_at) VALUES(?, 's_1', 'user', 'hello', 0, 'ready', 'held', ?, 0, 0, 0)",
        (message_id, reason),
    )


def codes(registry) -> dict[str, str | None]:
    held = registry.peek(messages.open_of, [])
    return {message.id: message.reason_code for message in held}


def test_messages_of_an_older_mam_that_still_writes(tmp_path) -> None:
    store = Store(tmp_path)
    store.paths.make()
    connection = older(store.db)
    insert(connection, "m_1", "it waits its turn")
    insert(connection, "m_2", "a draft is in its box")
    assert codes(store.registry) == {"m_1": ReasonCode.NOT_TRIED, "m_2": None}
    assert not database.has_additions(connection, schema.STATE_ADDITIONS), "reading leaves the file as it is"
    store.touch()
    assert codes(store.registry) == {"m_1": ReasonCode.NOT_TRIED, "m_2": None}
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    assert version == len(schema.STATE_MIGRATIONS), "an older mam that runs goes on"

    connection.execute("UPDATE messages SET reason='a draft is in its box', changed_at=7 WHERE id='m_1'")
    insert(connection, "m_3", "it waits its turn")
    connection.close()
    assert codes(store.registry) == {"m_1": None, "m_2": None, "m_3": None}
    draft = Reason("a draft is in its box", ReasonCode.DRAFT)
    store.registry.note(lambda transaction: messages.update(transaction, "m_1", reason=draft))
    assert codes(store.registry)["m_1"] == ReasonCode.DRAFT


def test_messages_of_an_older_mam_in_a_folder_that_nobody_may_write(tmp_path, monkeypatch) -> None:
    store = Store(tmp_path)
    store.paths.make()
    connection = older(store.db)
    insert(connection, "m_1", "it waits its turn")
    connection.close()

    def read_only(*_arguments, **_options):
        raise ReadOnly("nobody may write here")

    with monkeypatch.context() as patch:
        patch.setattr(database, "_open", read_only)
        assert codes(store.registry) == {"m_1": ReasonCode.NOT_TRIED}
