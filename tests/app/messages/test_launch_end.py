"""A message belongs to a launch: a purge, a new start or a close ends it, and whoever sent it learns why."""

import subprocess
from pathlib import Path

import pytest
from tests.app.team_desk import QUICK, said

from mam.adapters.store.tables import messages
from mam.adapters.store.yaml.document import LAST_LINE
from mam.adapters.system import process
from mam.app.messages import delivery, send
from mam.app.sessions import create, recover
from mam.app.sessions.stop import Stop
from mam.core.errors import Conflict, SessionNotFound


@pytest.fixture
def session(fleet):
    return fleet.sessions.create("practice", name="one", args=QUICK)


def ended(fleet, message_id):
    """Return the state and the reason of a message, after checking that the log has them too."""
    (message,) = [sent for sent in fleet.messages.inbox(sent=True) if sent["message_id"] == message_id]
    (entry,) = [entry for entry in fleet.sessions.log() if entry["detail"].get("message") == message_id]
    assert (entry["verb"], entry["reason"]) == ("send", message["reason"])
    assert entry["detail"]["state"] == message["state"]
    return message["state"], message["reason"]


def begin_typing(fleet, message_id, owner):
    fleet._access.context.registry.note(
        lambda transaction: messages.update(
            transaction, message_id, state="typing", owner=owner, attempts=1, reason=None
        )
    )


def dead_process():
    child = subprocess.Popen(["sleep", "1000"])
    owner = process.identify(child.pid).as_json()
    child.kill()
    child.wait(10)
    return owner


def test_s003_29_a_purge_ends_what_was_held(fleet, session) -> None:
    session.stop()
    held = session.send("for the agent of yesterday")
    assert held["state"] == "held"
    fleet.sessions.stop("one", purge_conversation=True)
    assert ended(fleet, held["message_id"]) == ("failed", "the session was purged before it was typed")
    fleet.sessions.create(name="one", args=QUICK)
    delivery.deliver_all(fleet._access.context)
    assert said(fleet, "one") == []


def test_s003_29_a_new_start_under_the_name_ends_what_was_held(fleet, session) -> None:
    session.stop()
    held = session.send("for the agent of yesterday")
    fleet.sessions.create(name="one", args=QUICK)
    assert ended(fleet, held["message_id"]) == ("failed", "'one' was started anew before it was typed")
    assert fleet.messages.send("one", "for the new agent", timeout=10)["state"] == "submitted"
    assert said(fleet, "one") == ["for the new agent"]


def test_s003_29_a_close_ends_what_was_held(master) -> None:
    master.teams.spawn("qa", agent="practice", args=QUICK)
    qa = master.sessions.get("qa")
    qa.stop()
    held = master.messages.send("qa", "for the agent of yesterday")
    assert held["state"] == "held"
    master.teams.close("qa")
    assert ended(master, held["message_id"]) == ("failed", "'qa' was closed before it was typed")
    master.teams.spawn("qa", agent="practice", args=QUICK)
    first = said(master, "qa")
    assert first and "for the agent of yesterday" not in first


def test_s003_29_a_resume_and_a_restart_keep_what_was_held(fleet, session) -> None:
    session.send("hello", timeout=10)
    session.stop()
    first = session.send("one")
    session.resume()
    delivery.deliver_all(fleet._access.context)
    session.send("run ls", timeout=10)
    session.wait("waiting", timeout=10)
    second = session.send("two")
    fleet.sessions.restart("one", force=True)
    delivery.deliver_all(fleet._access.context)
    states = {message["message_id"]: message["state"] for message in fleet.messages.inbox("one")}
    assert (states[first["message_id"]], states[second["message_id"]]) == ("submitted", "submitted")


@pytest.fixture
def before_the_record(monkeypatch):
    """Do something after `send` has found its session, and before it records the message."""

    def set_call(call):
        check = send.check_sender

        def check_and_call(*arguments):
            me = check(*arguments)
            monkeypatch.setattr(send, "check_sender", check)
            call()
            return me

        monkeypatch.setattr(send, "check_sender", check_and_call)

    return set_call


def test_s003_29_a_new_start_before_the_record_refuses_the_message(fleet, session, before_the_record) -> None:
    session.send("hello", timeout=10)
    session.stop()
    before_the_record(lambda: fleet.sessions.create(name="one", args=QUICK))
    with pytest.raises(Conflict, match="'one' was started anew"):
        session.send("for the agent of yesterday")
    delivery.deliver_all(fleet._access.context)
    assert said(fleet, "one") == []


def test_s003_29_a_purge_before_the_record_fails_the_message(fleet, session, before_the_record) -> None:
    session.send("hello", timeout=10)
    session.stop()
    before_the_record(lambda: fleet.sessions.stop("one", purge_conversation=True))
    receipt = session.send("for the agent of yesterday")
    assert receipt["state"] == "failed"
    fleet.sessions.create(name="one", args=QUICK)
    delivery.deliver_all(fleet._access.context)
    assert said(fleet, "one") == []


def test_s003_29_a_forgotten_session_gets_no_message(fleet, session, before_the_record) -> None:
    session.stop()
    before_the_record(lambda: fleet.sessions.forget("one"))
    with pytest.raises(SessionNotFound):
        session.send("for the agent of yesterday")


def test_s003_29_a_resume_before_the_record_keeps_the_message(fleet, session, before_the_record) -> None:
    session.send("hello", timeout=10)
    session.stop()
    before_the_record(session.resume)
    assert session.send("go on", timeout=10)["state"] == "submitted"


def test_a_forgotten_session_ends_what_was_held(fleet, session) -> None:
    session.stop()
    held = session.send("too late")
    fleet.sessions.forget("one")
    assert fleet.messages.inbox(sent=True) == []
    (entry,) = [
        entry for entry in fleet.sessions.log() if entry["detail"].get("message") == held["message_id"]
    ]
    assert (entry["reason"], entry["detail"]["state"]) == (
        "the session was forgotten before it was typed",
        "failed",
    )


@pytest.mark.parametrize(
    ("is_typing", "state", "reason"),
    [
        (False, "failed", "the session was forgotten before it was typed"),
        (True, "unconfirmed", "the session was forgotten while it was being typed"),
    ],
)
def test_a_sender_that_waits_learns_that_the_session_was_forgotten(
    fleet, session, monkeypatch, is_typing, state, reason
) -> None:
    session.stop()

    def forget_instead(context, session_id):
        if is_typing:
            (open_message,) = context.registry.peek(messages.open_of, [])
            begin_typing(fleet, open_message.id, process.identify(1).as_json())
        monkeypatch.undo()
        fleet.sessions.forget("one")

    monkeypatch.setattr(send, "deliver", forget_instead)
    receipt = send.send(fleet._access.context, fleet.caller, "one", "too late", timeout=10)
    assert (receipt["state"], receipt["reason"]) == (state, reason)


def test_a_session_that_is_removed_from_the_file_takes_its_messages_along(fleet, session) -> None:
    session.stop()
    held = session.send("too late")
    file = Path(fleet.registry_file)
    text = file.read_text(encoding="utf-8")
    head = text.partition("tmux_sessions:\n")[0]
    file.write_text(f"{head}tmux_sessions: []\n{LAST_LINE}", encoding="utf-8")
    fleet._access.context.registry.change(lambda transaction: None)
    assert fleet.messages.inbox(sent=True) == []
    (entry,) = [
        entry for entry in fleet.sessions.log() if entry["detail"].get("message") == held["message_id"]
    ]
    assert (entry["reason"], entry["detail"]["state"]) == (
        "the session was removed from the file by hand",
        "failed",
    )


def test_a_new_start_that_recovery_finishes_ends_what_was_held(fleet, session, monkeypatch) -> None:
    """The process of `create` dies after the agent was started and before its row was committed."""
    session.stop()
    held = session.send("for the agent of yesterday")

    def die(*_given, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(create, "bind", die)
        with pytest.raises(KeyboardInterrupt):
            fleet.sessions.create(name="one", args=QUICK)
    context = fleet._access.context
    delivery.deliver_all(context)
    recover.recover(context, fleet.caller)
    assert ended(fleet, held["message_id"])[0] == "failed"
    fleet.sessions.wait("one", "idle", timeout=15)
    delivery.deliver_all(context)
    assert said(fleet, "one") == []


def test_a_purge_that_recovery_finishes_ends_what_was_held(fleet, session, monkeypatch) -> None:
    session.stop()
    held = session.send("for the agent of yesterday")

    def die(*_given, **_options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Stop, "_purge", die)
        with pytest.raises(KeyboardInterrupt):
            fleet.sessions.stop("one", purge_conversation=True)
    recorded = fleet._access.context.registry.peek(messages.open_of, [])
    assert [message.state for message in recorded] == ["held"], "the purge is not committed yet"
    recover.recover(fleet._access.context, fleet.caller)
    assert ended(fleet, held["message_id"])[0] == "failed"


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_message_that_is_typed_at_that_moment_ends_as_unconfirmed(fleet, session, is_alive) -> None:
    """Nobody can say that it was not typed."""
    session.stop()
    held = session.send("half typed")
    owner = process.identify(1).as_json() if is_alive else dead_process()
    begin_typing(fleet, held["message_id"], owner)
    fleet.sessions.stop("one", purge_conversation=True)
    state, reason = ended(fleet, held["message_id"])
    assert state == "unconfirmed"
    assert not is_alive or reason == "the session was purged while it was being typed"


def test_sending_to_an_ended_session_says_when_it_arrives(fleet, session) -> None:
    session.send("hello", timeout=10)
    session.stop()
    receipt = session.send("later")
    assert (receipt["state"], receipt["reason"]) == (
        "held",
        "it has ended; the message arrives when it is resumed: mam resume one",
    )


def test_sending_to_a_session_that_cannot_be_resumed_fails(fleet, session) -> None:
    fleet.sessions.stop("one", purge_conversation=True)
    receipt = session.send("never")
    assert (receipt["state"], receipt["reason"]) == (
        "failed",
        "it has ended and cannot be resumed: no conversation of it is known",
    )
