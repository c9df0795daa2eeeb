"""Text that a killed sender left in the input box gets its Enter or is deleted; a person's draft stays."""

import signal
import subprocess
import sys

import pytest
from tests.app.killed_senders import REPOSITORY, kill_senders
from tests.app.team_desk import QUICK, said

from mam.app.messages import own_draft, receipt_proof
from mam.core.message_rules import MessageState

TEXT = "the one message that its sender left behind"
LONG = "\n".join(f"line {number} of a long message" for number in range(60))


@pytest.fixture
def session(fleet):
    return fleet.sessions.create("practice", name="one", args=QUICK)


@pytest.fixture
def no_waits(monkeypatch):
    """The keys of the dead sender have arrived already, and the screen stands still."""
    monkeypatch.setattr(receipt_proof, "_ON_THE_WAY_SECONDS", 0.2)
    monkeypatch.setattr(own_draft, "_STILL_SECONDS", 0.2)


def leave_behind(fleet, text=TEXT, step="pasted"):
    argv = [sys.executable, "-m", "tests.app.dying", step, fleet.root, "one", text]
    assert subprocess.run(argv, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL


def paste(fleet, session, text):
    fleet._access.context.tmux(session.row["tmux_server"]).paste(
        session.row["pane"]["id"], text, mark=session.id, enter=False
    )


def press(fleet, session, *keys):
    fleet._access.context.tmux(session.row["tmux_server"]).keys(
        session.row["pane"]["id"], list(keys), mark=session.id
    )


def ends(fleet):
    return [(message["state"], message["reason"]) for message in fleet.messages.inbox("one")]


@pytest.mark.parametrize("text", [TEXT, "two\nlines", LONG, " leading", "a;b #{x} $(y)"])
def test_own_text_gets_its_enter(fleet, session, no_waits, text) -> None:
    leave_behind(fleet, text)
    assert session.send("the next", timeout=30)["state"] in ("submitted", "queued")
    assert ends(fleet)[0] == ("submitted", None)
    assert said(fleet, "one") == [text, "the next"]


def test_a_part_of_it_is_deleted(fleet, session, no_waits) -> None:
    leave_behind(fleet, "\n".join([TEXT] * 4), "cut")
    assert session.send("the next", timeout=30)["state"] in ("submitted", "queued")
    state, reason = ends(fleet)[0]
    assert state == "failed"
    assert "mam deleted the part that stood in the input box" in reason
    assert said(fleet, "one") == ["the next"]


@pytest.mark.parametrize(
    ("keys", "words", "draft"),
    [
        ([], " and mine", "the one message and mine"),
        (["Backspace"], "", "the one messag"),
        (["Home"], "mine ", "mine the one message"),
        (["C-u"], "the one", "the one"),
    ],
    ids=["appended", "shortened", "before it", "another draft"],
)
def test_a_draft_of_a_person_is_not_touched(fleet, session, no_waits, keys, words, draft) -> None:
    leave_behind(fleet, "the one message")
    fleet.sessions.wait("one", "text:the one message", timeout=10)
    press(fleet, session, *keys)
    paste(fleet, session, words)
    fleet.sessions.wait("one", f"text:❯ {draft} *\n", timeout=10)
    held = session.send("the next")
    assert (held["state"], held["reason"]) == ("held", "a draft is in its box")
    state, reason = ends(fleet)[0]
    assert state == "unconfirmed"
    assert "other text is in the input box; look: mam read" in reason
    assert f"❯ {draft}\n" in session.read()
    press(fleet, session, "Enter")
    assert session.send("the last", timeout=30)["state"] in ("submitted", "queued")
    assert said(fleet, "one") == [draft, "the next", "the last"]


@pytest.mark.parametrize("is_recorded", [True, False], ids=["this mam", "an older mam"])
def test_an_unconfirmed_message_whose_text_still_stands(fleet, session, no_waits, is_recorded) -> None:
    leave_behind(fleet)
    forget = "" if is_recorded else ", typed=NULL"
    fleet._access.context.registry.note(
        lambda transaction: transaction.connection.execute(
            f"UPDATE messages SET state='unconfirmed', reason='nothing proves it', owner=NULL{forget}"
        )
    )
    assert session.send("the next", timeout=30)["state"] in ("submitted", "queued")
    assert said(fleet, "one") == [TEXT, "the next"]
    assert ends(fleet)[0] == ("submitted", None)


def test_a_text_that_the_agent_took_gets_no_second_enter(fleet, session, no_waits, monkeypatch) -> None:
    """Some programs put a prompt back into the input box when its turn is interrupted."""
    with monkeypatch.context() as patch:
        patch.setattr(receipt_proof, "wait_for", lambda *_given, **_options: None)
        assert session.send(TEXT)["state"] == "unconfirmed"
    session.wait("idle", timeout=15)
    fleet.sessions.wait("one", "text:the one message", timeout=10)
    fleet._access.context.registry.note(
        lambda transaction: transaction.connection.execute(
            "UPDATE messages SET state='unconfirmed', reason='nothing proves it', evidence=NULL"
        )
    )
    paste(fleet, session, TEXT)
    held = session.send("the next")
    assert (held["state"], held["reason"]) == ("held", "a draft is in its box")
    assert ends(fleet)[0] == ("submitted", None)
    assert said(fleet, "one") == [TEXT]


def test_without_a_record_nobody_can_tell(fleet, session, no_waits, monkeypatch) -> None:
    leave_behind(fleet)
    monkeypatch.setattr(receipt_proof, "is_unsubmitted", lambda *_given: False)
    held = session.send("the next")
    assert (held["state"], held["reason"]) == ("held", "a draft is in its box")
    state, reason = ends(fleet)[0]
    assert state == "unconfirmed"
    assert "mam cannot tell whether the agent took the text" in reason


def test_it_waits_until_enter_can_be_pressed(fleet, session, no_waits, monkeypatch) -> None:
    leave_behind(fleet)
    with monkeypatch.context() as patch:
        waits = own_draft.Settled(MessageState.TYPING, "its permission dialog is open")
        patch.setattr(own_draft, "settle", lambda *_given: waits)
        second = session.send("the next")
    assert second["state"] == "held"
    assert second["reason"].endswith("comes before it, and is held: its permission dialog is open")
    assert ends(fleet)[0] == ("held", "its permission dialog is open")
    assert session.send("the last", timeout=30)["state"] in ("submitted", "queued")
    assert said(fleet, "one") == [TEXT, "the next", "the last"]


def test_a_command_gets_its_enter_too(fleet, session, no_waits) -> None:
    argv = [sys.executable, "-m", "tests.app.dying", "pasted-command", fleet.root, "one", "/rename left"]
    assert subprocess.run(argv, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    assert session.send("the next", timeout=30)["state"] in ("submitted", "queued")
    assert ends(fleet)[0] == ("submitted", None)
    assert "─ left ──" in session.read()


@pytest.mark.slow
def test_senders_that_are_killed_at_random_points(fleet, session) -> None:
    """`tests/torture` kills fifty."""
    assert sum(kill_senders(fleet, session, 2, 1, lambda: said(fleet, "one")).values()) == 2
