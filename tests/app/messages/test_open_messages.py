"""Many held messages with long texts: mam reads the text of the one that comes next."""

from __future__ import annotations

import pytest

import mam
from mam.adapters.store.tables import messages
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
