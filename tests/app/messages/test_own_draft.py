"""Text that a killed sender left in the input box gets its Enter or is deleted; a person's draft stays."""

import itertools
import json
import signal
import subprocess
import sys

import pytest
from tests.app.killed_senders import REPOSITORY, kill_senders
from tests.app.team_desk import QUICK, said
from tests.waiting import wait_until

from mam.adapters.agents.box_contents import BoxContents
from mam.adapters.agents.kind import ScreenState
from mam.adapters.tmux.client import Tmux
from mam.app.context import claims
from mam.app.context.liveness import SessionLiveness
from mam.app.messages import own_draft, receipt_proof
from mam.app.messages.delivery import deliver
from mam.app.observation.pane_look import PaneLook, look_at_pane
from mam.core.errors import TerminalsDown
from mam.core.liveness_values import Liveness
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
    if step != "begun":
        until_draft(fleet)


def until_draft(fleet):
    """Wait until the agent has drawn what was pasted."""
    row = fleet.sessions.get("one").row
    wait_until(lambda: look_at_pane(fleet._access.context, row).screen_state.box == "draft", "the draft")


def paste(fleet, session, text):
    fleet._access.context.tmux(session.row["tmux_server"]).paste(
        session.row["pane"]["id"], text, mark=session.id, enter=False
    )


def press(fleet, session, *keys):
    fleet._access.context.tmux(session.row["tmux_server"]).keys(
        session.row["pane"]["id"], list(keys), mark=session.id
    )


def change_messages(fleet, *, age=0, **fields):
    """Change the messages as no verb would; `age` makes them older by so many seconds."""

    def work(transaction):
        rows = transaction.connection.execute("SELECT id, typed FROM messages").fetchall()
        for message_id, typed in rows:
            facts = json.loads(typed)
            changed = {"reason": "nothing proves it", "typed": json.dumps({**facts, "at": facts["at"] - age})}
            changed |= fields
            names = ", ".join(f"{name}=?" for name in changed)
            transaction.connection.execute(
                f"UPDATE messages SET {names} WHERE id=?", (*changed.values(), message_id)
            )

    fleet._access.context.registry.note(work)


def ends(fleet):
    return [(message["state"], message["reason"]) for message in fleet.messages.inbox("one")]


@pytest.fixture
def person(monkeypatch) -> None:
    """Somebody is at the terminal, who may have typed what the input box shows."""
    monkeypatch.setattr(Tmux, "may_have_got_keys", lambda *_: True)


@pytest.mark.parametrize("text", [LONG, "yes"], ids=["folded", "short"])
def test_what_stands_there_is_ours_if_nobody_was_at_the_terminal(fleet, session, no_waits, text) -> None:
    leave_behind(fleet, text)
    assert session.send("the next", timeout=30)["state"] in ("submitted", "queued")
    assert ends(fleet)[0] == ("submitted", None)
    assert said(fleet, "one") == [text, "the next"]


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize(
    "text", [TEXT, "two lines\nof one message", f" {TEXT}", "the long a;b #{x} $(y)", "漢字かな" * 5]
)
def test_own_text_gets_its_enter(fleet, session, no_waits, text) -> None:
    leave_behind(fleet, text)
    assert session.send("the next", timeout=30)["state"] in ("submitted", "queued")
    assert ends(fleet)[0] == ("submitted", None)
    assert said(fleet, "one") == [text, "the next"]


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize("text", [LONG, "yes"], ids=["folded", "short"])
def test_what_nobody_can_prove_ours_is_left_to_a_person(fleet, session, no_waits, text) -> None:
    leave_behind(fleet, text)
    held = session.send("the next")
    assert (held["state"], held["reason"]) == ("held", "a draft is in its box")
    state, reason = ends(fleet)[0]
    assert state == "unconfirmed"
    assert "mam cannot tell whether the text in the input box is this message; look: mam read" in reason
    assert said(fleet, "one") == []
    press(fleet, session, "Enter")
    assert session.send("the last", timeout=30)["state"] in ("submitted", "queued")
    assert said(fleet, "one") == [text, "the next", "the last"]


@pytest.mark.usefixtures("person")
def test_a_folded_paste_of_a_person_is_not_submitted(fleet, session, no_waits) -> None:
    """A sign such as `[Pasted text #2 +59 lines]` says nothing of the words."""
    leave_behind(fleet, LONG)
    fleet.sessions.wait("one", "text:59 lines", timeout=10)
    press(fleet, session, "C-u")
    paste(fleet, session, LONG.replace("long message", "draft of a person"))
    fleet.sessions.wait("one", "text:#2 .59 lines", timeout=10)
    assert session.send("the next")["state"] == "held"
    assert ends(fleet)[0][0] == "unconfirmed"
    assert said(fleet, "one") == []


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize(
    ("text", "draft", "age"),
    [("yes", "yes", 0), ("yes", "y e s", 0), (TEXT, TEXT.replace("one m", "onem"), 0), (TEXT, TEXT, 7200)],
    ids=["short", "short with spaces", "other spaces", "old"],
)
@pytest.mark.parametrize("state", ["unconfirmed", "typing"])
def test_a_message_does_not_claim_what_a_person_may_have_written(
    fleet, session, no_waits, state, text, draft, age
) -> None:
    leave_behind(fleet, text, "begun")
    change_messages(fleet, state=state, owner=None, age=age)
    paste(fleet, session, draft)
    fleet.sessions.wait("one", f"text:❯ {draft} *\n", timeout=10)
    assert session.send("the next")["state"] == "held"
    assert ends(fleet)[0][0] == "unconfirmed"
    assert said(fleet, "one") == []
    assert f"❯ {draft}\n" in session.read()


def test_while_a_person_types_the_message_waits(monkeypatch) -> None:
    columns = itertools.count()

    def look(*_given):
        seen = PaneLook(SessionLiveness(Liveness.ALIVE))
        seen.cursor = (next(columns), 0)
        seen.screen_state = ScreenState(contents=BoxContents(f"{seen.cursor}"))
        assert seen.cursor[0] < 1000, "it looks without end"
        return seen

    monkeypatch.setattr(own_draft, "look_until_clear", look)
    monkeypatch.setattr(own_draft, "_CHANGING_SECONDS", 0.0, raising=False)
    monkeypatch.setattr(own_draft, "_STEP", 0.001)
    settled = own_draft.settle(NoContext(), {"agent": "practice"}, None, None)
    assert (settled.state, settled.reason) == ("typing", "the text in its input box keeps changing")


class NoContext:
    """Stands for a context whose kinds are asked nothing."""

    def kind(self, _name):
        return None


def test_nothing_is_pressed_while_the_session_is_being_stopped(fleet, session, no_waits) -> None:
    leave_behind(fleet)
    context = fleet._access.context
    with claims.claim_session(context, "stop", "one", lambda _transaction, _row: {}):
        deliver(context, session.id)
        assert ends(fleet)[0] == ("held", "it is being stopped")
        assert said(fleet, "one") == []
    assert session.send("the next", timeout=30)["state"] in ("submitted", "queued")
    assert said(fleet, "one") == [TEXT, "the next"]


def silence(monkeypatch, name):
    """Let tmux not answer when keys are pressed."""

    def fail(*_given, **_options):
        raise TerminalsDown("tmux does not answer")

    monkeypatch.setattr(Tmux, name, fail)


def test_a_part_waits_for_a_tmux_that_does_not_answer(fleet, session, no_waits, monkeypatch) -> None:
    leave_behind(fleet, "\n".join([TEXT] * 4), "cut")
    with monkeypatch.context() as patch:
        silence(patch, "keys")
        assert session.send("the next")["state"] == "held"
        assert ends(fleet)[0] == ("held", "tmux does not answer")
    assert session.send("the last", timeout=30)["state"] in ("submitted", "queued")
    assert ends(fleet)[0][0] == "failed"
    assert said(fleet, "one") == ["the next", "the last"]


def test_a_part_waits_while_nobody_knows_whether_the_agent_lives(fleet, session, monkeypatch) -> None:
    unknown = PaneLook(SessionLiveness(Liveness.UNKNOWN))
    monkeypatch.setattr(own_draft, "look_until_clear", lambda _look: unknown)
    settled = own_draft._erase(fleet._access.context, session.row, "C-u", TEXT)
    assert (settled.state, settled.reason) == ("typing", "tmux does not answer")


@pytest.mark.parametrize("is_pressed", [True, False])
def test_an_enter_without_an_answer_of_tmux(fleet, session, no_waits, monkeypatch, is_pressed) -> None:
    leave_behind(fleet)
    press_keys = Tmux.keys

    def keys(*given, **options):
        if is_pressed:
            press_keys(*given, **options)
        raise TerminalsDown("tmux does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(Tmux, "keys", keys)
        patch.setattr(receipt_proof, "proof_seconds", lambda _text: 10.0 if is_pressed else 0.2)
        deliver(fleet._access.context, session.id)
    state, reason = ends(fleet)[0]
    if is_pressed:
        assert (state, reason) == ("submitted", None)
    else:
        assert state == "unconfirmed"
        assert reason.startswith("tmux did not answer, so mam may have pressed Enter")


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
    change_messages(fleet, state="unconfirmed", owner=None, **({} if is_recorded else {"typed": None}))
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
    change_messages(fleet, state="unconfirmed", evidence=None)
    paste(fleet, session, TEXT)
    until_draft(fleet)
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
    argv = [
        sys.executable,
        "-m",
        "tests.app.dying",
        "pasted-command",
        fleet.root,
        "one",
        "/rename left-by-its-sender",
    ]
    assert subprocess.run(argv, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    assert session.send("the next", timeout=30)["state"] in ("submitted", "queued")
    assert ends(fleet)[0] == ("submitted", None)
    assert "─ left-by-its-sender ──" in session.read()


@pytest.mark.promise("P26")
@pytest.mark.slow
def test_e8_senders_that_are_killed_at_random_points(fleet, session) -> None:
    """`tests/torture` kills fifty."""
    assert sum(kill_senders(fleet, session, 2, 1, lambda: said(fleet, "one")).values()) == 2
