"""Answering exactly the dialog that was shown, keys that answer no dialog, and interrupts."""

import time
from pathlib import Path

import pytest
from tests.waiting import send_and_wait, wait_for

from mam.adapters.agents.dialog_options import Choices
from mam.adapters.agents.kind import ScreenState
from mam.adapters.agents.practice import Practice
from mam.adapters.store import database, fifo_lock
from mam.adapters.tmux.client import Tmux
from mam.adapters.tmux.error_translation import PaneChanged
from mam.adapters.tmux.parse import Listing
from mam.app.messages import answer as answering
from mam.app.observation import pane_look
from mam.app.observation.activity import SessionEvidence
from mam.core import activity
from mam.core import caller as callers
from mam.core.errors import (
    Conflict,
    DeliveryUnconfirmed,
    DialogOpen,
    NoDialog,
    NotAllowed,
    NotReady,
    PaneGone,
    Refused,
    TerminalsDown,
    Usage,
)

QUICK = ["--speed", "0"]


@pytest.fixture
def session(fleet):
    return fleet.sessions.create("practice", name="one", args=QUICK)


def drill(fleet, session, command, dialog):
    """Have the practice agent open a dialog."""
    send_and_wait(fleet, session.id, command, command=True)
    wait_for(session, "waiting")
    assert fleet.messages.dialog(session.id)["dialog"] == dialog


def press(fleet, session, *keys):
    fleet._access.context.tmux(session.row["tmux_server"]).keys(
        session.row["pane"]["id"], list(keys), mark=session.id
    )


def test_the_open_dialog_is_shown(fleet, session) -> None:
    with pytest.raises(NoDialog):
        fleet.messages.dialog("one")
    drill(fleet, session, "/ask touch foo", "permission")
    dialog = fleet.messages.dialog("one")
    assert "touch foo" in dialog["text"]
    assert dialog["options"][0] == "Yes"
    assert fleet.messages.dialog("one") == dialog
    press(fleet, session, "Down")
    wait_for(fleet.sessions.get("one"), r"text:❯ 2\. Yes")
    assert fleet.messages.dialog("one")["fingerprint"] == dialog["fingerprint"], (
        "moving the pointer changes nothing"
    )


@pytest.mark.parametrize(
    ("moves", "text", "is_made", "label"),
    [
        ((), "allow", True, "Yes"),
        (("Down", "Down"), "allow", True, "Yes"),
        ((), "deny", False, "No, and tell the agent what to do differently (esc)"),
        (("Down",), "3", False, "No, and tell the agent what to do differently (esc)"),
        ((), "yes, and don't ask again", True, "Yes, and don't ask again"),
    ],
)
def test_a_permission(fleet, session, workspace, until, moves, text, is_made, label) -> None:
    drill(fleet, session, "/ask touch foo", "permission")
    press(fleet, session, *moves)
    wait_for(fleet.sessions.get("one"), rf"text:❯ {len(moves) + 1}\.")
    dialog = fleet.messages.dialog("one")
    result = session.answer(text, expect=dialog["fingerprint"])
    assert result == {
        "session": "one",
        "dialog": "permission",
        "fingerprint": dialog["fingerprint"],
        "answer": label,
        "next": None,
    }
    wait_for(session, "idle")
    assert (workspace / "foo").exists() == is_made
    entry = fleet.sessions.log("one")[-1]
    assert (entry["verb"], entry["by"]) == ("answer", "user")


@pytest.mark.promise("P30")
def test_a_dialog_that_is_not_the_one_that_was_shown(fleet, session, workspace) -> None:
    drill(fleet, session, "/ask touch foo", "permission")
    dialog = fleet.messages.dialog("one")
    session.answer("deny")
    drill(fleet, session, "/ask touch bar", "permission")
    with pytest.raises(Conflict, match="not the expected one"):
        session.answer("allow", expect=dialog["fingerprint"])
    assert fleet.messages.dialog("one")["dialog"] == "permission", "nothing was pressed"
    session.answer("deny")
    with pytest.raises(NoDialog):
        session.answer("allow")
    assert not (workspace / "bar").exists()


@pytest.mark.promise("P30")
def test_a_dialog_that_changes_between_the_look_and_the_key(fleet, session, workspace, monkeypatch) -> None:
    """Another dialog opens after the first look: the key that was meant for the first is not pressed."""
    drill(fleet, session, "/ask touch foo", "permission")
    real, looks = answering._Answering.give, []

    def give(self, text):
        looks.append(text)
        press(fleet, session, "Escape")
        wait_for(session, "idle")
        drill(fleet, session, "/ask touch bar", "permission")
        return real(self, text)

    monkeypatch.setattr(answering._Answering, "give", give)
    with pytest.raises(Conflict):
        session.answer("allow")
    assert looks
    assert "touch bar" in fleet.messages.dialog("one")["text"]
    assert not (workspace / "foo").exists()
    assert not (workspace / "bar").exists()


def test_a_question(fleet, session) -> None:
    drill(fleet, session, "/question", "question")
    options = fleet.messages.dialog("one")["options"]
    with pytest.raises(Refused, match="takes no free text"):
        session.answer("none of these")
    assert session.answer(options[1].upper())["answer"] == options[1]
    wait_for(session, "idle")
    wait_for(session, f"text:{options[1]}")


def test_a_dialog_that_is_drawn_anew(fleet, session, monkeypatch) -> None:
    """A look between two parts of one drawing shows neither dialog nor box."""
    drill(fleet, session, "/question", "question")
    real, looks = Practice.read_screen, []

    def torn(self, screen):
        looks.append(screen)
        return ScreenState() if len(looks) <= 3 else real(self, screen)

    monkeypatch.setattr(pane_look, "_DRAWS_SECONDS", 10.0)
    # No evidence reports that the agent waits.
    monkeypatch.setattr(answering, "gather_evidence", lambda *_args: SessionEvidence(session.row, None, None))
    monkeypatch.setattr(Practice, "read_screen", torn)
    assert fleet.messages.dialog("one")["dialog"] == "question"


def test_a_pointer_that_is_not_seen_for_a_moment(fleet, session, workspace, monkeypatch) -> None:
    drill(fleet, session, "/ask touch foo", "permission")
    real, hides = Practice.choices, []
    press_key = answering._Answering._press

    def faint(self, screen):
        choices = real(self, screen)
        if choices is None or not hides:
            return choices
        hides.pop()
        return Choices(choices.labels, None, choices.text, is_numbered=False)

    def press_and_hide(self, key, option=None):
        press_key(self, key, option)
        hides.extend("..")

    monkeypatch.setattr(Practice, "choices", faint)
    monkeypatch.setattr(answering._Answering, "_press", press_and_hide)
    assert session.answer("deny")["answer"].startswith("No")
    assert not (workspace / "foo").exists()


def test_no_option_is_taken_while_the_pointer_is_not_seen(fleet, session, workspace, monkeypatch) -> None:
    """A drawing that is not whole: Enter would allow what is to be denied."""
    drill(fleet, session, "/ask touch foo", "permission")
    real, moves = Practice.choices, []

    def faint(self, screen):
        choices = real(self, screen)
        hides = choices and moves
        return Choices(choices.labels, None, choices.text, is_numbered=False) if hides else choices

    monkeypatch.setattr(Practice, "choices", faint)
    monkeypatch.setattr(answering._Answering, "_move", lambda self, option: moves.append(option))
    with pytest.raises(Conflict):
        session.answer("allow")
    assert moves, "the pointer was seen at first"
    moves.clear()
    assert fleet.messages.dialog("one")["dialog"] == "permission"
    assert not (workspace / "foo").exists()


@pytest.mark.parametrize("is_numbered", [True, False])
def test_free_text_where_no_pointer_is_seen(fleet, session, monkeypatch, is_numbered) -> None:
    """Enter would take whichever option the pointer is at."""
    drill(fleet, session, "/question", "question")
    real = Practice.choices

    def faint(self, screen):
        choices = real(self, screen)
        return Choices(choices.labels, None, choices.text, is_numbered=is_numbered) if choices else None

    monkeypatch.setattr(Practice, "choices", faint)
    monkeypatch.setattr(Practice, "free_text_needs_enter", True)
    monkeypatch.setattr(Choices, "free_text", lambda self: 1)
    pressed: list[list[str]] = []

    def keys(self, pane_id, keys, **_options):
        pressed.append(keys)
        raise PaneGone("enough")

    monkeypatch.setattr(Tmux, "keys", keys)
    with pytest.raises(PaneGone if is_numbered else Refused):
        session.answer("a free text")
    assert pressed == ([["2"]] if is_numbered else [])


@pytest.mark.parametrize("before", ["paste", "enter"])
def test_free_text_becomes_no_prompt(fleet, session, monkeypatch, before) -> None:
    """The question ended, and the box for prompts stands where it was."""
    drill(fleet, session, "/question", "question")
    real = Tmux.paste

    def leave(*_args, **_options):
        press(fleet, session, "Escape")
        wait_for(session, "idle")

    def leave_and_paste(*args, **more):
        leave()
        # What was pasted just before the question ended stands in the box.
        real(*args, **{**more, "at": None})

    monkeypatch.setattr(Choices, "free_text", lambda self: 0)
    if before == "paste":
        monkeypatch.setattr(answering._Answering, "_move", leave)
    else:
        monkeypatch.setattr(Tmux, "paste", leave_and_paste)
    with pytest.raises(Conflict, match="it is gone"):
        session.answer("these words of mine")
    assert "these words of mine" not in [turn["text"] for turn in session.transcript()["turns"]]


@pytest.mark.parametrize("before", ["paste", "enter"])
def test_free_text_goes_into_no_other_dialog(fleet, session, workspace, monkeypatch, before) -> None:
    """The question ended, and a permission is asked for where it stood."""
    drill(fleet, session, "/question", "question")
    drills = []

    def ask(*_args, **_options):
        drills.append(1)
        press(fleet, session, "Escape")
        wait_for(session, "idle")
        drill(fleet, session, "/ask touch foo", "permission")

    monkeypatch.setattr(Choices, "free_text", lambda self: 0)
    if before == "paste":
        monkeypatch.setattr(answering._Answering, "_move", ask)
    else:
        real = Tmux.paste
        monkeypatch.setattr(Tmux, "paste", lambda *args, **more: real(*args, **more) if drills else ask())
    with pytest.raises(Conflict, match="not the expected one"):
        session.answer("touch foo")
    assert fleet.messages.dialog("one")["dialog"] == "permission", "it is still there"
    assert not (workspace / "foo").exists()


def test_free_text_and_its_enter_are_as_far_apart_as_the_program_needs(fleet, session, monkeypatch) -> None:
    """Gemini takes an Enter that follows a paste at once for a part of it."""
    drill(fleet, session, "/question", "question")
    pasted: list[float] = []
    entered: list[float] = []
    press_keys = Tmux.keys

    def keys(self, *args, **more):
        entered.append(time.monotonic())
        return press_keys(self, *args, **more)

    monkeypatch.setattr(Choices, "free_text", lambda self: 0)
    monkeypatch.setattr(Practice, "pause", lambda self, text: 0.3)
    monkeypatch.setattr(Tmux, "paste", lambda *args, **more: pasted.append(time.monotonic()))
    monkeypatch.setattr(Tmux, "keys", keys)
    session.answer("Enter to select")
    assert entered[-1] - pasted[0] >= 0.3


def test_trust(fleet) -> None:
    with pytest.raises(DialogOpen):
        fleet.sessions.create("practice", name="new", args=["--trust-dialog", *QUICK])
    session = fleet.sessions.get("new")
    assert session.answer("allow")["answer"] == "Yes, I trust this folder"
    wait_for(session, "idle")
    with pytest.raises(DialogOpen):
        fleet.sessions.create("practice", name="other", args=["--trust-dialog", *QUICK])
    fleet.messages.answer("other", "deny")
    wait_for(fleet.sessions.get("other"), "exited")


def test_what_a_dialog_does_not_offer(fleet, session) -> None:
    drill(fleet, session, "/ask touch foo", "permission")
    with pytest.raises(Refused, match="does not offer") as refused:
        session.answer("maybe")
    assert "1. Yes; 2. Yes, and" in (refused.value.hint or "")
    assert fleet.messages.dialog("one")["dialog"] == "permission"


def test_who_may_answer(fleet, session, monkeypatch, home) -> None:
    """The session that started another may answer for it; nobody else, and nobody for itself."""
    other = fleet.sessions.create("practice", name="other", args=QUICK)
    fleet._access._caller = callers.session(session.id)
    child = fleet.sessions.create("practice", name="child", args=QUICK)
    assert child.row["parent"] == session.id
    fleet._access._caller = callers.user()
    for asking in (session, child):
        drill(fleet, asking, "/ask touch foo", "permission")
    fleet._access._caller = callers.session(session.id)
    with pytest.raises(NotAllowed, match="answers"):
        session.answer("allow")
    assert child.answer("allow")["answer"] == "Yes"
    fleet._access._caller = callers.session(other.id)
    with pytest.raises(NotAllowed, match="answers"):
        session.answer("allow")
    monkeypatch.setattr(fleet._access.context.settings(), "answers", "all")
    assert session.answer("deny")["next"] is None


def test_keys(fleet, session, until_reported) -> None:
    assert fleet.messages.keys("one", "y", "n", "Space", "1") == {
        "session": "one",
        "keys": ["y", "n", "Space", "1"],
    }
    wait_for(fleet.sessions.get("one"), "text:yn 1")
    fleet.messages.keys("one", "Enter")
    until_reported(session, "Stop")
    assert session.transcript()["turns"][0]["text"] == "yn 1"
    for names in ((), ("F13",), ("rm -rf",)):
        with pytest.raises(Usage):
            fleet.messages.keys("one", *names)


@pytest.mark.promise("P29")
@pytest.mark.parametrize("key", ["Enter", "y", "n", "1", "Space", "Tab", "BTab", "C-m", "C-j"])
def test_no_key_answers_a_dialog(fleet, session, workspace, key) -> None:
    drill(fleet, session, "/ask touch foo", "permission")
    with pytest.raises(DialogOpen, match="was not pressed"):
        fleet.messages.keys("one", "Down", "Up", key)
    assert fleet.messages.dialog("one")["dialog"] == "permission"
    fleet.messages.keys("one", "Escape")
    wait_for(session, "idle")
    assert not (workspace / "foo").exists()


def test_a_question_that_was_answered_is_asked_no_more(fleet, session, monkeypatch, until_reported) -> None:
    """Its hook reported a dialog a moment ago, and has reported nothing since."""
    real = Practice.read_hook
    monkeypatch.setattr(activity, "FRESH_SECONDS", 600.0)
    drill(fleet, session, "/ask touch foo", "permission")
    until_reported(session, "PermissionRequest")

    def read_questions(self, data):
        event = real(self, data)
        return event if event is not None and event.state == "waiting" else None

    monkeypatch.setattr(Practice, "read_hook", read_questions)
    assert session.status()["activity_source"] == "hook"
    fleet.messages.answer("one", "allow")
    assert session.status()["activity"] != "waiting"


@pytest.mark.parametrize("source", ["hook", "title"])
def test_no_key_is_pressed_while_the_agent_reports_a_dialog(
    fleet, session, monkeypatch, until_reported, source
) -> None:
    """A dialog takes keys before it is drawn, and a program may print something like an input box."""
    until_reported(session, "SessionStart")
    if source == "title":
        monkeypatch.setattr(Practice, "read_title", lambda self, title: "waiting")
    else:
        name = f"{session.id}.{session.row['pane']['pid']}.1.json"
        payload = '{"hook_event_name": "PermissionRequest"}'
        # The report stays fresh, however long the two calls take.
        monkeypatch.setattr(activity, "FRESH_SECONDS", 600.0)
        Path(fleet._access.context.paths.spool, name).write_text(payload, encoding="utf-8")
    with pytest.raises(DialogOpen, match="reports an open dialog; Enter was not pressed"):
        fleet.messages.keys("one", "Enter")
    with pytest.raises(DialogOpen, match="nothing was interrupted"):
        session.interrupt()


def test_keys_for_an_unknown_program_or_an_ended_session(fleet, session) -> None:
    fleet.sessions.create("cat", name="cat")
    with pytest.raises(DialogOpen, match="cannot see"):
        fleet.messages.keys("cat", "Enter")
    session.stop()
    with pytest.raises(PaneGone, match="'one' cannot take keys: it has ended") as error:
        fleet.messages.keys("one", "Escape")
    assert error.value.hint == "mam resume one"


def test_keys_behind_a_tmux_that_does_not_answer_are_an_error_of_tmux(fleet, session, monkeypatch) -> None:
    def keep_silent(*_given):
        raise TerminalsDown("tmux server does not answer")

    monkeypatch.setattr(Tmux, "look", keep_silent)
    for press_keys in (
        lambda: fleet.messages.keys("one", "Escape"),
        session.interrupt,
    ):
        with pytest.raises(TerminalsDown, match="'one' cannot take keys: tmux does not answer") as error:
            press_keys()
        assert "mam doctor" in error.value.hint


def test_keys_for_an_agent_that_tmux_does_not_show_name_a_way_that_works(fleet, session, monkeypatch) -> None:
    def show_nothing(*_given):
        raise PaneGone("there is no such pane")

    with monkeypatch.context() as hidden:
        hidden.setattr(Tmux, "look", show_nothing)
        hidden.setattr(Tmux, "panes", lambda *_given, **_options: Listing(True, []))
        with pytest.raises(PaneGone, match="its pane is gone") as error:
            session.interrupt()
        assert error.value.hint == "mam restart one"
        # A resume leaves a session whose process lives as it is.
        assert not fleet.sessions.resume("one").changed
        (found,) = [one for one in fleet.monitor.doctor() if one["check"] == "session one"]
        assert (found["ok"], found["mend"]) == (False, "mam restart one")


def test_an_answer_that_was_given_is_no_error_where_the_registry_is_busy(fleet, session, monkeypatch) -> None:
    """Nobody may repeat it: the key might answer the next dialog."""
    drill(fleet, session, "/ask touch foo", "permission")
    told = []
    fleet.on_warning(told.append)
    with monkeypatch.context() as held:
        held.setattr(database, "BUSY_SECONDS", 0.3)
        with fifo_lock.hold(f"{fleet._access.context.paths.db}.queue", 1.0):
            assert session.answer("deny")["dialog"] == "permission"
    assert "are not in the log" in told[0]
    wait_for(session, "idle")


def test_a_screen_that_keeps_changing_names_the_way_out(fleet, session, monkeypatch) -> None:
    def refuse(*_given, **_options):
        raise PaneChanged("the pane shows something else than a moment ago")

    monkeypatch.setattr(Tmux, "keys", refuse)
    with pytest.raises(NotReady, match="Escape was not pressed") as error:
        fleet.messages.keys("one", "Escape")
    assert "mam stop one" in error.value.hint


def test_interrupt(fleet) -> None:
    session = fleet.sessions.create("practice", name="slow", args=["--speed", "2"])
    assert session.interrupt()["was"] == "idle"
    session.send("tell me something long")
    wait_for(session, "working")
    result = session.interrupt()
    assert (result["was"], result["activity"]) == ("working", "idle")
    wait_for(session, "idle")
    assert fleet.sessions.log("slow")[-1]["verb"] == "interrupt"


def test_an_interrupt_refuses_no_dialog(fleet, session) -> None:
    drill(fleet, session, "/ask touch foo", "permission")
    with pytest.raises(DialogOpen, match="interrupted"):
        session.interrupt()
    assert fleet.messages.dialog("one")["dialog"] == "permission"


def test_an_interrupt_that_nobody_can_prove(fleet) -> None:
    session = fleet.sessions.create("cat", name="cat")
    with pytest.raises(DeliveryUnconfirmed, match="C-c"):
        session.interrupt()
