"""A parked message is typed by nobody before a person releases it."""

import pytest
from tests.app.messages.test_launch_end import begin_typing, dead_process
from tests.app.team_desk import QUICK, said

from mam.adapters.store.tables import messages
from mam.app.messages import delivery, parking
from mam.core import caller as callers
from mam.core.errors import NotAllowed

REASON = "the root came from elsewhere"


@pytest.fixture
def session(fleet):
    return fleet.sessions.create("practice", name="one", args=QUICK)


def park(fleet):
    return fleet._access.context.registry.note(lambda transaction: parking.park_messages(transaction, REASON))


def state(fleet, message_id):
    (message,) = [sent for sent in fleet.messages.inbox(sent=True) if sent["message_id"] == message_id]
    return message["state"], message["reason"]


def test_a_parked_message_is_listed_and_typed_only_after_its_release(fleet, session) -> None:
    session.stop()
    held = session.send("wait for me")
    assert held["state"] == "held"
    (parked,) = park(fleet)
    assert parked.id == held["message_id"]
    session.resume()
    delivery.deliver_all(fleet._access.context)
    assert said(fleet, "one") == []
    assert state(fleet, held["message_id"]) == ("parked", REASON)
    assert [one["message_id"] for one in fleet.messages.inbox(parked=True)] == [held["message_id"]]
    assert fleet.messages.send("one", "wait for me", message_id=held["message_id"])["state"] == "parked"
    (released,) = fleet.messages.release(held["message_id"])
    assert (released["released"], released["session"], released["state"]) == (True, "one", "submitted")
    assert said(fleet, "one") == ["wait for me"]
    assert fleet.messages.inbox(parked=True) == []
    (again,) = fleet.messages.release(held["message_id"])
    assert (again["released"], again["reason"]) == (False, "it is not parked")


def test_a_message_that_was_being_typed_is_never_typed_again(fleet, session) -> None:
    session.stop()
    held = session.send("perhaps it has me")
    begin_typing(fleet, held["message_id"], dead_process())
    park(fleet)
    session.resume()
    (released,) = fleet.messages.release()
    assert (released["released"], released["state"]) == (True, "unconfirmed")
    assert said(fleet, "one") == []


def test_a_message_that_no_session_could_get_stays_parked(fleet, session) -> None:
    session.stop()
    held = session.send("for nobody")
    park(fleet)
    fleet.sessions.stop("one", purge_conversation=True)
    assert state(fleet, held["message_id"])[0] == "parked", "a purge does not end it"
    (outcome,) = fleet.messages.release()
    assert outcome["released"] is False
    assert outcome["reason"] == "it has ended and cannot be resumed: no conversation of it is known"
    assert fleet.messages.release("m_unknown")[0]["reason"] == "there is no such message"
    fleet.sessions.forget("one")
    assert fleet.messages.inbox(sent=True) == []
    (entry,) = [
        entry for entry in fleet.sessions.log() if entry["detail"].get("message") == held["message_id"]
    ]
    assert entry["reason"] == "the session was forgotten before it was typed"


def test_a_parked_message_can_be_withdrawn(fleet, session) -> None:
    session.stop()
    held = session.send("not any more")
    park(fleet)
    assert fleet.messages.withdraw(held["message_id"])
    assert state(fleet, held["message_id"]) == ("failed", "the message was withdrawn")
    assert fleet.messages.release() == []


def test_only_a_person_releases(fleet, session) -> None:
    context = fleet._access.context
    for caller in (callers.session("s_1f00ab42"), callers.Caller(callers.CallerKind.UNKNOWN, 1)):
        with pytest.raises(NotAllowed, match="'mam inbox --release'"):
            parking.release(context, caller)


def test_old_parked_messages_are_kept(fleet, session, monkeypatch) -> None:
    session.stop()
    held = session.send("the first")
    park(fleet)
    monkeypatch.setattr(messages, "_KEPT", 0)
    session.send("the second")
    session.send("the third")
    assert state(fleet, held["message_id"])[0] == "parked"
