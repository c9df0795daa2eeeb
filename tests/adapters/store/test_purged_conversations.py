"""What names a purged conversation is removed; what keeps a message from being typed twice stays."""

from __future__ import annotations

import json

import pytest
from tests.adapters.store.making import Store, new_row

from mam.adapters.store.checked_copy import _parse_message
from mam.adapters.store.tables import drifts, messages, purged_conversations

PURGED, LATER, OTHER = "0f0e0d0c-1111-4222-8333-444455556666", "1f0e0d0c-2222", "2f0e0d0c-3333"


@pytest.fixture
def store(tmp_path) -> Store:
    made = Store(tmp_path)
    made.add(
        new_row(
            1,
            status="stopped",
            claude_session_id_own=PURGED,
            conversations=[{"id": PURGED, "source": "hook", "since": "2026-11-15T12:00:00Z"}],
        ),
        new_row(2, status="stopped"),
    )
    return made


def add(transaction, number: int, *, wanted: str | None, typed_in: str | None, state: str = "parked") -> str:
    message_id = f"m_{number}"
    fields = {"id": message_id, "session_id": f"s_{number:08x}", "sender": "user", "text": "the words"}
    rest = {"is_command": False, "wanted": "ready", "state": state, "reason": None, "conversation": wanted}
    messages.add(transaction, {**fields, **rest})
    if typed_in is not None:
        typed = messages.Typed("the words", 5.0, typed_in, "a launch")
        messages.update(transaction, message_id, typed=typed, attempts=1)
        messages.note_look(transaction, message_id, {typed_in: 7})
    return message_id


def erase(store: Store) -> set[str]:
    return store.registry.note(
        lambda transaction: purged_conversations.erase(
            transaction.connection, transaction.get("s_00000001") or new_row(1)
        )
    )


def test_what_was_typed_for_a_message_stays_and_its_conversation_goes(store) -> None:
    def work(transaction) -> None:
        add(transaction, 1, wanted=PURGED, typed_in=LATER)
        add(transaction, 2, wanted=OTHER, typed_in=OTHER)

    store.registry.note(work)
    assert erase(store) == {PURGED, LATER}
    text = "\n".join(line for line in store.dump() if '"messages"' in line)
    assert PURGED not in text
    assert LATER not in text
    found = store.registry.peek(lambda transaction: messages.find(transaction, "m_1"), None)
    assert found is not None
    assert found.typed is not None
    assert (found.typed.text, found.typed.launch, found.typed.conversation) == ("the words", "a launch", "")
    assert (found.attempts, found.looked, found.flaw) == (1, {}, None)
    assert found.conversation, "else it could be typed into any conversation"
    other = store.registry.peek(lambda transaction: messages.find(transaction, "m_2"), None)
    assert other is not None
    assert other.typed is not None
    assert (other.conversation, other.typed.conversation, other.looked) == (OTHER, OTHER, {OTHER: 7})


def test_a_message_of_a_purged_session_can_be_restored(store) -> None:
    store.registry.note(lambda transaction: add(transaction, 1, wanted=PURGED, typed_in=PURGED))
    erase(store)
    connection = store.registry.writer()
    connection.row_factory = lambda cursor, row: dict(
        zip([column[0] for column in cursor.description], row, strict=True)
    )
    (row,) = connection.execute("SELECT * FROM messages").fetchall()
    connection.row_factory = None
    _parse_message(row)
    assert json.loads(row["typed"])["text"] == "the words"


def test_the_log_keeps_what_was_done_without_the_id(store) -> None:
    def work(transaction) -> None:
        one, two = transaction.get("s_00000001"), transaction.get("s_00000002")
        transaction.log("user", "resume", one, conversation=PURGED, tier=1)
        transaction.log("user", "stop", one, f"{PURGED} is busy", removed=[f"a/{PURGED}.jsonl"])
        transaction.log("user", "resume", two, conversation=OTHER)
        drifts.record(transaction, {"id": f"C:{PURGED}", "message": f"{PURGED} is on disk"}, is_written=False)
        drifts.record(transaction, {"id": "C:other", "message": f"{OTHER} is on disk"}, is_written=False)

    store.registry.note(work)
    erase(store)
    query = "SELECT verb, reason, detail FROM log WHERE verb IN ('resume', 'stop') ORDER BY seq"
    found = store.registry.writer().execute(query).fetchall()
    assert [(verb, reason, json.loads(detail)) for verb, reason, detail in found] == [
        ("resume", None, {"conversation": None, "tier": 1}),
        ("stop", "* is busy", {"removed": ["a/*.jsonl"]}),
        ("resume", None, {"conversation": OTHER}),
    ]
    assert [drift["id"] for _, _, drift in store.registry.peek(lambda t: drifts.since(t, 0), [])] == [
        "C:other"
    ]


def test_a_short_id_is_no_part_of_other_words() -> None:
    document = {"conversation": "a1", "removed": ["data1"], "a1": 3}
    assert purged_conversations.without(document, {"a1"}) == {"conversation": None, "removed": ["data1"]}
