"""Many held messages with long texts: mam reads the text of the one that comes next."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

import mam
from mam.adapters.store.tables import messages, set_aside
from mam.app.messages import delivery
from mam.app.messages.displayed_reason import displayed_reason
from mam.core.message_rules import NOT_TRIED

LONG, SESSION = 100_000, "s_00000001"


@pytest.fixture
def context(quick_path, home):
    with mam.open(str(quick_path)) as fleet:
        fleet.init()
        yield fleet._access.context


def record(transaction, number: int):
    fields = {
        "id": f"m_{number:08}",
        "session_id": SESSION,
        "sender": "user",
        "text": "x" * LONG,
        "is_command": False,
        "wanted": "ready",
        "state": "held",
        "reason": NOT_TRIED,
        "conversation": None,
    }
    return messages.add(transaction, fields)


def test_e11_held_messages_are_not_all_read_for_one(context, monkeypatch) -> None:
    for number in range(40):
        last = context.registry.note(lambda transaction, number=number: record(transaction, number))
    read: list[int] = []
    make = messages.Message.__init__

    def counting(self, values) -> None:
        make(self, values)
        read.append(len(self.text))

    monkeypatch.setattr(messages.Message, "__init__", counting)
    tried: list[str] = []
    monkeypatch.setattr(delivery, "_deliver_one", lambda _context, message: bool(tried.append(message.id)))
    delivery.deliver(context, SESSION)
    delivery.deliver_all(context)
    assert tried == ["m_00000000"] * 2
    assert delivery.comes_next(context, last)
    assert not delivery.is_typed_to(context, SESSION)
    context.registry.peek(lambda transaction: displayed_reason(transaction, last), None)
    assert sum(read) <= 3 * LONG


@pytest.mark.promise("P23")
@pytest.mark.parametrize(
    ("change", "state"),
    [
        ("typed='{cut off'", "failed"),
        ("owner='[1]'", "failed"),
        ("text=7.5, created_at='now'", "failed"),
        ("looked='{', attempts=1", "unconfirmed"),
        ("typed='{}, {}', state='typing'", "unconfirmed"),
    ],
)
def test_e2_a_broken_message_ends_and_the_next_one_is_tried(context, monkeypatch, change, state) -> None:
    for number in range(2):
        context.registry.note(lambda transaction, number=number: record(transaction, number))
    with closing(sqlite3.connect(context.paths.db)) as connection, connection:
        connection.execute(f"UPDATE messages SET {change} WHERE id='m_00000000'")
    tried: list[str] = []
    monkeypatch.setattr(delivery, "_deliver_one", lambda _context, message: bool(tried.append(message.id)))
    delivery.deliver(context, SESSION)
    assert tried == ["m_00000001"]
    broken = context.registry.peek(lambda transaction: messages.find(transaction, "m_00000000"), None)
    assert broken.state == state
    assert broken.reason.startswith("mam cannot deliver it: its ")
    (item,) = context.registry.peek(set_aside.listed, [])
    assert (item.kind, item.key) == ("message", "m_00000000")


def test_e2_a_message_on_which_mam_fails_ends_with_the_reason(context, monkeypatch) -> None:
    for number in range(2):
        context.registry.note(lambda transaction, number=number: record(transaction, number))
    tried: list[str] = []

    def deliver_one(_context, message):
        tried.append(message.id)
        if message.id == "m_00000000":
            raise KeyError("what nobody foresaw")
        return False

    monkeypatch.setattr(delivery, "_deliver_one", deliver_one)
    delivery.deliver(context, SESSION)
    assert tried == ["m_00000000", "m_00000001"]
    ended = context.registry.peek(lambda transaction: messages.find(transaction, "m_00000000"), None)
    reason = "mam cannot deliver it: KeyError: 'what nobody foresaw'"
    assert (ended.state, str(ended.reason)) == ("failed", reason)


def test_e2_a_screen_on_which_mam_fails_holds_the_message(context, monkeypatch) -> None:
    context.registry.note(lambda transaction: record(transaction, 0))
    monkeypatch.setattr(delivery, "_row_of", lambda _context, _message: {"id": SESSION, "agent": "claude"})

    def look(_context, _row):
        raise IndexError("no such cell")

    monkeypatch.setattr(delivery, "_look", look)
    delivery.deliver(context, SESSION)
    held = context.registry.peek(lambda transaction: messages.find(transaction, "m_00000000"), None)
    reason = "mam cannot look at the session: IndexError: no such cell"
    assert (held.state, str(held.reason)) == ("held", reason)
