"""One message that several threads of a process want to deliver."""

from threading import Barrier, Event, Thread

from tests.app.team_desk import QUICK, said
from tests.waiting import wait_until

from mam.adapters.store.tables import messages
from mam.app.messages import delivery, message_as_text_or_file
from mam.app.messages.send import new_message


def test_the_loser_of_a_race_leaves_the_mark_of_the_winner(fleet, monkeypatch) -> None:
    session = fleet.sessions.create("practice", name="one", args=QUICK)
    context = fleet._access.context
    both, types, goes_on = Barrier(2), Event(), Event()
    prepare, type_text = message_as_text_or_file.prepare, delivery.type_text

    def prepare_together(*given):
        both.wait(60)
        return prepare(*given)

    def type_later(*given, **options):
        types.set()
        goes_on.wait(60)
        return type_text(*given, **options)

    def serve():
        own = context.for_thread()
        try:
            (message,) = own.registry.peek(messages.open_of, [])
            delivery._deliver_one(own, message)
        finally:
            own.close()

    new = {**new_message(None, "user", session.row, "the one message of both"), "reason": None}
    context.registry.note(lambda transaction: messages.add(transaction, new))
    monkeypatch.setattr(message_as_text_or_file, "prepare", prepare_together)
    monkeypatch.setattr(delivery, "type_text", type_later)
    threads = [Thread(target=serve) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        wait_until(types.is_set, "the winner")
        wait_until(lambda: sum(thread.is_alive() for thread in threads) == 1, "the end of the loser")
        assert delivery.is_typed_to(context, session.id)
    finally:
        goes_on.set()
        for thread in threads:
            thread.join(60)
    assert not delivery.is_typed_to(context, session.id)
    assert said(fleet, "one") == ["the one message of both"]
