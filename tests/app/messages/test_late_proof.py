"""A receipt is corrected when its proof comes late, and no proof serves two messages."""

import json
import os
import signal
from pathlib import Path

import pytest
from tests.app.team_desk import QUICK, said

from mam.adapters.agents.practice import STORE, Practice
from mam.adapters.store.tables import messages
from mam.adapters.system import process
from mam.app.context.liveness import identity_of
from mam.app.messages import delivery, late_proof, receipt_proof
from mam.app.messages import send as sending
from mam.app.observation.hook_intake import take_in
from mam.core.errors import TerminalsDown


@pytest.fixture
def session(fleet):
    return fleet.sessions.create("practice", name="one", args=QUICK)


def send_unproven(session, monkeypatch, text, message_id=None):
    """Send a text that the agent takes while mam sees no proof of it."""
    with monkeypatch.context() as patch:
        patch.setattr(receipt_proof, "wait_for", lambda *_given, **_options: None)
        receipt = sending.send(
            session._access.context, session._access.caller, session.id, text, message_id=message_id
        )
    assert receipt["state"] == "unconfirmed"
    return receipt


def send_lost(session, monkeypatch, text):
    """Send a text that never reaches the agent: tmux does not answer, and has typed nothing."""

    def silent(*_given, **_options):
        raise TerminalsDown("tmux does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(delivery, "type_text", silent)
        return send_unproven(session, monkeypatch, text)


def states(fleet):
    return [
        (message["text"], message["state"], message["evidence"]) for message in fleet.messages.inbox("one")
    ]


@pytest.fixture
def no_hooks(monkeypatch):
    """No hook proves a message later, so that only the transcript does."""
    monkeypatch.setattr(messages, "correct_by_prompt", lambda *_given: None)


def test_s003_24_the_transcript_corrects_a_receipt_later(
    fleet, session, monkeypatch, no_hooks, until
) -> None:
    receipt = send_unproven(session, monkeypatch, "hello")
    until(lambda: said(fleet, "one") == ["hello"])
    fleet.sessions.rename("one", "two")
    (message,) = fleet.messages.inbox("two")
    assert (message["message_id"], message["state"]) == (receipt["message_id"], "submitted")
    assert (message["evidence"], message["reason"]) == ("transcript", None)
    entries = [entry["detail"]["state"] for entry in fleet.sessions.log("two") if entry["verb"] == "send"]
    assert entries == ["unconfirmed", "submitted"]


def test_e12_a_hook_that_comes_late_corrects_the_receipt(fleet, session, monkeypatch, until) -> None:
    send_unproven(session, monkeypatch, "hello")

    def is_corrected():
        take_in(fleet._access.context)
        return states(fleet)[0][1] == "submitted"

    until(is_corrected)
    assert states(fleet) == [("hello", "submitted", "hook")]


def test_a_receipt_without_proof_stays(fleet, session, monkeypatch) -> None:
    send_lost(session, monkeypatch, "hello")
    session.send("something else", timeout=10)
    late_proof.correct_receipts(fleet._access.context)
    assert [state for _, state, _ in states(fleet)] == ["unconfirmed", "submitted"]


@pytest.mark.promise("P28")
def test_one_proof_does_not_serve_two_messages(fleet, session, monkeypatch, no_hooks) -> None:
    send_lost(session, monkeypatch, "hello")
    assert session.send("hello", timeout=10)["state"] == "submitted"
    session.wait("idle", timeout=15)
    take_in(fleet._access.context)
    late_proof.correct_receipts(fleet._access.context)
    assert [state for _, state, _ in states(fleet)] == ["unconfirmed", "submitted"]
    send_unproven(session, monkeypatch, "hello")
    session.wait("idle", timeout=15)
    late_proof.correct_receipts(fleet._access.context)
    assert sorted(state for _, state, _ in states(fleet)) == ["submitted", "submitted", "unconfirmed"]
    assert said(fleet, "one") == ["hello", "hello"]


def test_the_late_line_of_an_earlier_message_does_not_prove_the_same_text(
    fleet, session, monkeypatch
) -> None:
    """The first message was proven by its hook; its line comes only after the second one was typed."""
    assert session.send("hello", timeout=10)["state"] == "submitted"
    first = fleet.messages.inbox("one")[0]["message_id"]
    session.wait("idle", timeout=15)
    size = Practice().transcript_size(session.transcript()["conversation"], session.row["stores"])
    registry = fleet._access.context.registry
    registry.note(lambda transaction: messages.update(transaction, first, before=0))
    monkeypatch.setattr(Practice, "transcript_size", lambda *_given: 0)
    assert size > 0
    send_lost(session, monkeypatch, "hello")
    late_proof.correct_receipts(fleet._access.context)
    assert [state for _, state, _ in states(fleet)] == ["submitted", "unconfirmed"]


def test_what_failed_stays_failed(fleet, session, monkeypatch) -> None:
    session.stop()
    held = session.send("hello")
    assert fleet.messages.withdraw(held["message_id"])
    session.resume()
    press = fleet._access.context.tmux(session.row["tmux_server"])
    row = fleet.sessions.get("one").row
    press.paste(row["pane"]["id"], "hello", mark=row["id"], enter=True)
    session.wait("idle", timeout=15)
    fleet.sessions.wait("one", "text:hello", timeout=10)
    take_in(fleet._access.context)
    late_proof.correct_receipts(fleet._access.context)
    assert [state for _, state, _ in states(fleet)] == ["failed"]


def test_a_transcript_is_read_again_only_if_it_has_grown(fleet, session, monkeypatch) -> None:
    session.send("first", timeout=10)
    session.wait("idle", timeout=15)
    send_lost(session, monkeypatch, "hello")
    reads = []
    real = Practice.count_submitted
    monkeypatch.setattr(
        Practice, "count_submitted", lambda self, *given: reads.append(given) or real(self, *given)
    )
    for _ in range(5):
        late_proof.correct_receipts(fleet._access.context)
    assert len(reads) == 1
    session.send("second", timeout=10)
    session.wait("idle", timeout=15)
    reads.clear()
    for _ in range(5):
        late_proof.correct_receipts(fleet._access.context)
    assert len(reads) == 1


def test_a_message_of_an_older_launch_is_not_proven_by_a_new_conversation(
    fleet, session, monkeypatch
) -> None:
    send_lost(session, monkeypatch, "hello")
    session.stop()
    fleet.sessions.create(name="one", args=QUICK)
    row = fleet.sessions.get("one").row
    fleet._access.context.tmux(row["tmux_server"]).paste(
        row["pane"]["id"], "hello", mark=row["id"], enter=True
    )
    fleet.sessions.wait("one", "text:hello", timeout=10)
    fleet.sessions.wait("one", "idle", timeout=15)
    late_proof.correct_receipts(fleet._access.context)
    assert [state for _, state, _ in states(fleet)] == ["unconfirmed"]


LOST = "the agent ended with this text in its queue, and never got it; send it again"


@pytest.fixture
def busy(fleet, session):
    """The session in a turn that does not end by itself, with two messages in its queue."""
    fleet.messages.send(session.id, "/hang", command=True)
    session.wait("working", timeout=15)
    for text in ("second", "third"):
        assert session.send(text)["state"] == "queued"
    return session


def states_of_queue(fleet):
    return [
        (message["text"], message["state"], message["evidence"], message["reason"])
        for message in fleet.messages.inbox("one")
        if message["text"] in ("second", "third")
    ]


def kill_agent(session, until):
    identity = identity_of(session.row)
    os.kill(identity.pid, signal.SIGKILL)
    until(lambda: not process.is_alive(identity))


def test_a_queued_message_is_submitted_once_its_turn_begins(fleet, busy, until) -> None:
    late_proof.correct_receipts(fleet._access.context)
    assert [state for _, state, _, _ in states_of_queue(fleet)] == ["queued", "queued"]
    busy.interrupt()
    until(lambda: said(fleet, "one")[-2:] == ["second", "third"])
    # Any command that changes something looks for the proof.
    fleet.sessions.rename("one", "two")
    fleet.sessions.rename("two", "one")
    assert states_of_queue(fleet) == [
        ("second", "submitted", "transcript", None),
        ("third", "submitted", "transcript", None),
    ]
    entry = [entry for entry in fleet.sessions.log("one") if entry["verb"] == "send"][-1]
    assert (entry["reason"], entry["detail"]["state"]) == ("its turn began", "submitted")


def test_what_a_killed_agent_had_in_its_queue_is_unconfirmed_and_the_resume_says_so(
    fleet, busy, until
) -> None:
    kill_agent(busy, until)
    outcome = fleet.sessions.resume("one")
    assert outcome.note is not None
    assert "2 messages were in its queue when it ended" in outcome.note
    assert "mam inbox one" in outcome.note
    assert states_of_queue(fleet) == [
        ("second", "unconfirmed", None, LOST),
        ("third", "unconfirmed", None, LOST),
    ]
    late_proof.correct_receipts(fleet._access.context)
    assert "second" not in said(fleet, "one")
    # Sent again, it is a message of its own, and its turn proves nothing for the lost one.
    assert busy.send("second", timeout=10)["state"] == "submitted"
    busy.wait("idle", timeout=15)
    late_proof.correct_receipts(fleet._access.context)
    assert [state for text, state, _, _ in states_of_queue(fleet) if text == "second"] == [
        "unconfirmed",
        "submitted",
    ]
    busy.stop()
    assert fleet.sessions.resume("one").note is None


@pytest.mark.parametrize("purge", [False, True], ids=["stop", "purge"])
def test_what_a_stopped_agent_had_in_its_queue_is_unconfirmed(fleet, busy, purge) -> None:
    busy.stop(purge_conversation=purge)
    assert [(state, reason) for _, state, _, reason in states_of_queue(fleet)] == 2 * [("unconfirmed", LOST)]


def test_a_turn_that_began_before_the_agent_ended_is_submitted(fleet, busy, until) -> None:
    conversation = busy.transcript()["conversation"]
    kill_agent(busy, until)
    path = Path(busy.row["stores"][STORE], "mam-practice", f"{conversation}.jsonl")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"type": "user", "text": "second", "at": "2026-11-20T00:00:00Z"}) + "\n")
    outcome = fleet.sessions.resume("one")
    assert outcome.note is not None
    assert outcome.note.startswith("1 message was in its queue")
    assert [state for _, state, _, _ in states_of_queue(fleet)] == ["submitted", "unconfirmed"]


def test_a_queue_that_nobody_settled_at_the_end_is_settled_after_a_new_start(
    fleet, busy, monkeypatch
) -> None:
    """As after the death of the process that stopped it, or after a stop by an older mam."""
    with monkeypatch.context() as patch:
        patch.setattr(late_proof, "_correct_all", lambda *_given, **_options: None)
        busy.stop()
        assert [state for _, state, _, _ in states_of_queue(fleet)] == ["queued", "queued"]
        fleet.sessions.create(name="one", args=QUICK)
    late_proof.correct_receipts(fleet._access.context)
    assert [(state, reason) for _, state, _, reason in states_of_queue(fleet)] == 2 * [("unconfirmed", LOST)]


def test_without_the_record_nobody_can_tell_what_became_of_the_queue(fleet, busy, monkeypatch) -> None:
    monkeypatch.setattr(Practice, "count_taken", lambda *_given: None)
    busy.stop()
    assert {state for _, state, _, _ in states_of_queue(fleet)} == {"unconfirmed"}
    assert all("nothing tells whether it took this text" in reason for *_, reason in states_of_queue(fleet))
