"""Hands in a session's pane: dialogs answered as they were shown, keys that answer none, turns cut short."""

import time
from pathlib import Path

import pytest

from mam.adapters.agents.dialog_options import Choices
from mam.adapters.agents.kind import ScreenState
from mam.adapters.agents.practice import Practice
from mam.adapters.tmux.client import Tmux
from mam.app.messages import answer as answering
from mam.app.observation.activity import SessionEvidence
from mam.core import activity
from mam.core import caller as callers
from mam.core.errors import (
    Conflict,
    DeliveryUnconfirmed,
    DialogOpen,
    NoDialog,
    NotAllowed,
    PaneGone,
    Refused,
    Usage,
)

QUICK = ["--speed", "0"]


@pytest.fixture
def one(fleet):
    return fleet.sessions.create("practice", name="one", args=QUICK)


def drill(fleet, session, words, dialog):
    """Have the practice agent open a dialog."""
    assert fleet.messages.send(session.id, words, command=True, timeout=10)["state"] == "submitted"
    session.wait("waiting", timeout=10)
    assert fleet.messages.dialog(session.id)["dialog"] == dialog


def press(fleet, session, *keys):
    fleet._access.context.tmux(session.row["tmux_server"]).keys(
        session.row["pane"]["id"], list(keys), mark=session.id
    )


def test_what_is_asked(fleet, one) -> None:
    with pytest.raises(NoDialog):
        fleet.messages.dialog("one")
    drill(fleet, one, "/ask touch foo", "permission")
    shown = fleet.messages.dialog("one")
    assert "touch foo" in shown["text"]
    assert shown["options"][0] == "Yes"
    assert fleet.messages.dialog("one") == shown
    press(fleet, one, "Down")
    fleet.sessions.wait("one", r"text:❯ 2\. Yes", timeout=10)
    assert fleet.messages.dialog("one")["fingerprint"] == shown["fingerprint"], (
        "moving the pointer changes nothing"
    )


@pytest.mark.parametrize(
    ("moves", "words", "is_made", "label"),
    [
        ((), "allow", True, "Yes"),
        (("Down", "Down"), "allow", True, "Yes"),
        ((), "deny", False, "No, and tell the agent what to do differently (esc)"),
        (("Down",), "3", False, "No, and tell the agent what to do differently (esc)"),
        ((), "yes, and don't ask again", True, "Yes, and don't ask again"),
    ],
)
def test_a_permission(fleet, one, workspace, until, moves, words, is_made, label) -> None:
    drill(fleet, one, "/ask touch foo", "permission")
    press(fleet, one, *moves)
    shown = fleet.messages.dialog("one")
    done = one.answer(words, expect=shown["fingerprint"])
    assert done == {
        "session": "one",
        "dialog": "permission",
        "fingerprint": shown["fingerprint"],
        "answer": label,
        "next": None,
    }
    one.wait("idle", timeout=10)
    assert (workspace / "foo").exists() == is_made
    entry = fleet.sessions.log("one")[-1]
    assert (entry["verb"], entry["by"]) == ("answer", "user")


def test_a_dialog_that_is_not_the_one_that_was_shown(fleet, one, workspace) -> None:
    drill(fleet, one, "/ask touch foo", "permission")
    shown = fleet.messages.dialog("one")
    one.answer("deny")
    drill(fleet, one, "/ask touch bar", "permission")
    with pytest.raises(Conflict, match="not the one"):
        one.answer("allow", expect=shown["fingerprint"])
    assert fleet.messages.dialog("one")["dialog"] == "permission", "nothing was pressed"
    one.answer("deny")
    with pytest.raises(NoDialog):
        one.answer("allow")
    assert not (workspace / "bar").exists()


def test_a_dialog_that_changes_between_the_look_and_the_key(fleet, one, workspace, monkeypatch) -> None:
    """Another dialog opens after the first look: the key that was meant for the first is not pressed."""
    from mam.app.messages import answer as answering

    drill(fleet, one, "/ask touch foo", "permission")
    real, looks = answering._Answering.give, []

    def give(self, words):
        looks.append(words)
        press(fleet, one, "Escape")
        one.wait("idle", timeout=10)
        drill(fleet, one, "/ask touch bar", "permission")
        return real(self, words)

    monkeypatch.setattr(answering._Answering, "give", give)
    with pytest.raises(Conflict):
        one.answer("allow")
    assert looks
    assert "touch bar" in fleet.messages.dialog("one")["text"]
    assert not (workspace / "foo").exists()
    assert not (workspace / "bar").exists()


def test_a_question(fleet, one) -> None:
    drill(fleet, one, "/question", "question")
    options = fleet.messages.dialog("one")["options"]
    with pytest.raises(Refused, match="words of one's own"):
        one.answer("none of these")
    assert one.answer(options[1].upper())["answer"] == options[1]
    one.wait("idle", timeout=10)
    one.wait(f"text:{options[1]}", timeout=10)


def test_a_dialog_that_is_drawn_anew(fleet, one, monkeypatch) -> None:
    """A look between two parts of one drawing shows neither dialog nor box."""
    drill(fleet, one, "/question", "question")
    real, looks = Practice.look, []

    def torn(self, screen):
        looks.append(screen)
        return ScreenState() if len(looks) <= 3 else real(self, screen)

    # No word of the agent's own says that it waits.
    monkeypatch.setattr(answering, "known", lambda *_given: SessionEvidence(one.row, None, None))
    monkeypatch.setattr(Practice, "look", torn)
    assert fleet.messages.dialog("one")["dialog"] == "question"


def test_a_pointer_that_is_not_seen_for_a_moment(fleet, one, workspace, monkeypatch) -> None:
    drill(fleet, one, "/ask touch foo", "permission")
    real, hides = Practice.choices, []
    press_key = answering._Answering._press

    def faint(self, screen):
        found = real(self, screen)
        if found is None or not hides:
            return found
        hides.pop()
        return Choices(found.labels, None, found.text, is_numbered=False)

    def press_and_hide(self, key, wanted=None):
        press_key(self, key, wanted)
        hides.extend("..")

    monkeypatch.setattr(Practice, "choices", faint)
    monkeypatch.setattr(answering._Answering, "_press", press_and_hide)
    assert one.answer("deny")["answer"].startswith("No")
    assert not (workspace / "foo").exists()


def test_no_option_is_taken_while_the_pointer_is_not_seen(fleet, one, workspace, monkeypatch) -> None:
    """A drawing that is not whole: Enter would allow what is to be denied."""
    drill(fleet, one, "/ask touch foo", "permission")
    real, moves = Practice.choices, []

    def faint(self, screen):
        found = real(self, screen)
        hides = found and moves
        return Choices(found.labels, None, found.text, is_numbered=False) if hides else found

    monkeypatch.setattr(Practice, "choices", faint)
    monkeypatch.setattr(answering._Answering, "_move", lambda self, wanted: moves.append(wanted))
    with pytest.raises(Conflict):
        one.answer("allow")
    assert moves, "the pointer was seen at first"
    moves.clear()
    assert fleet.messages.dialog("one")["dialog"] == "permission"
    assert not (workspace / "foo").exists()


@pytest.mark.parametrize("is_numbered", [True, False])
def test_own_words_where_no_pointer_is_seen(fleet, one, monkeypatch, is_numbered) -> None:
    """Enter would take whichever option the pointer is at."""
    drill(fleet, one, "/question", "question")
    real = Practice.choices

    def faint(self, screen):
        found = real(self, screen)
        return Choices(found.labels, None, found.text, is_numbered=is_numbered) if found else None

    monkeypatch.setattr(Practice, "choices", faint)
    monkeypatch.setattr(Practice, "opens_own_words", True)
    monkeypatch.setattr(Choices, "own_words", lambda self: 1)
    pressed: list[list[str]] = []

    def keys(self, pane_id, keys, **_options):
        pressed.append(keys)
        raise PaneGone("enough")

    monkeypatch.setattr(Tmux, "keys", keys)
    with pytest.raises(PaneGone if is_numbered else Refused):
        one.answer("words of one's own")
    assert pressed == ([["2"]] if is_numbered else [])


@pytest.mark.parametrize("before", ["paste", "enter"])
def test_own_words_become_no_prompt(fleet, one, monkeypatch, before) -> None:
    """The question ended, and the box for prompts stands where it was."""
    drill(fleet, one, "/question", "question")
    real = Tmux.paste

    def leave(*_given, **_options):
        press(fleet, one, "Escape")
        one.wait("idle", timeout=10)

    def leave_and_paste(*given, **more):
        leave()
        # What was pasted just before the question ended stands in the box.
        real(*given, **{**more, "at": None})

    monkeypatch.setattr(Choices, "own_words", lambda self: 0)
    if before == "paste":
        monkeypatch.setattr(answering._Answering, "_move", leave)
    else:
        monkeypatch.setattr(Tmux, "paste", leave_and_paste)
    with pytest.raises(Conflict, match="is gone now"):
        one.answer("these words of mine")
    assert "these words of mine" not in [turn["text"] for turn in one.transcript()["turns"]]


@pytest.mark.parametrize("before", ["paste", "enter"])
def test_own_words_go_into_no_other_dialog(fleet, one, workspace, monkeypatch, before) -> None:
    """The question ended, and a permission is asked for where it stood."""
    drill(fleet, one, "/question", "question")
    asked = []

    def ask(*_given, **_options):
        asked.append(1)
        press(fleet, one, "Escape")
        one.wait("idle", timeout=10)
        drill(fleet, one, "/ask touch foo", "permission")

    monkeypatch.setattr(Choices, "own_words", lambda self: 0)
    if before == "paste":
        monkeypatch.setattr(answering._Answering, "_move", ask)
    else:
        real = Tmux.paste
        monkeypatch.setattr(Tmux, "paste", lambda *given, **more: real(*given, **more) if asked else ask())
    with pytest.raises(Conflict, match="not the one that was shown"):
        one.answer("touch foo")
    assert fleet.messages.dialog("one")["dialog"] == "permission", "it is still there"
    assert not (workspace / "foo").exists()


def test_own_words_and_their_enter_are_as_far_apart_as_the_program_needs(fleet, one, monkeypatch) -> None:
    """Gemini takes an Enter that follows a paste at once for a part of it."""
    drill(fleet, one, "/question", "question")
    pasted: list[float] = []
    entered: list[float] = []
    press_keys = Tmux.keys

    def keys(self, *given, **more):
        entered.append(time.monotonic())
        return press_keys(self, *given, **more)

    monkeypatch.setattr(Choices, "own_words", lambda self: 0)
    monkeypatch.setattr(Practice, "pause", lambda self, text: 0.3)
    monkeypatch.setattr(Tmux, "paste", lambda *given, **more: pasted.append(time.monotonic()))
    monkeypatch.setattr(Tmux, "keys", keys)
    one.answer("Enter to select")
    assert entered[-1] - pasted[0] >= 0.3


def test_trust(fleet) -> None:
    with pytest.raises(DialogOpen):
        fleet.sessions.create("practice", name="new", args=["--trust-dialog", *QUICK])
    session = fleet.sessions.get("new")
    assert session.answer("allow")["answer"] == "Yes, I trust this folder"
    session.wait("idle", timeout=10)
    with pytest.raises(DialogOpen):
        fleet.sessions.create("practice", name="other", args=["--trust-dialog", *QUICK])
    fleet.messages.answer("other", "deny")
    fleet.sessions.wait("other", "exited", timeout=10)


def test_what_a_dialog_does_not_offer(fleet, one) -> None:
    drill(fleet, one, "/ask touch foo", "permission")
    with pytest.raises(Refused, match="does not offer") as refused:
        one.answer("maybe")
    assert "1. Yes; 2. Yes, and" in (refused.value.hint or "")
    assert fleet.messages.dialog("one")["dialog"] == "permission"


def test_who_may_answer(fleet, one, monkeypatch, home) -> None:
    """The session that started another may answer for it; nobody else, and nobody for itself."""
    other = fleet.sessions.create("practice", name="other", args=QUICK)
    fleet._access._caller = callers.session(one.id)
    child = fleet.sessions.create("practice", name="child", args=QUICK)
    assert child.row["parent"] == one.id
    fleet._access._caller = callers.user()
    for session in (one, child):
        drill(fleet, session, "/ask touch foo", "permission")
    fleet._access._caller = callers.session(one.id)
    with pytest.raises(NotAllowed, match="answers"):
        one.answer("allow")
    assert child.answer("allow")["answer"] == "Yes"
    fleet._access._caller = callers.session(other.id)
    with pytest.raises(NotAllowed, match="answers"):
        one.answer("allow")
    monkeypatch.setattr(fleet._access.context.settings(), "answers", "all")
    assert one.answer("deny")["next"] is None


def test_keys(fleet, one) -> None:
    assert fleet.messages.keys("one", "y", "n", "Space", "1") == {
        "session": "one",
        "keys": ["y", "n", "Space", "1"],
    }
    fleet.sessions.wait("one", "text:yn 1", timeout=10)
    fleet.messages.keys("one", "Enter")
    one.wait("idle", timeout=10)
    assert one.transcript()["turns"][0]["text"] == "yn 1"
    for words in ((), ("F13",), ("rm -rf",)):
        with pytest.raises(Usage):
            fleet.messages.keys("one", *words)


@pytest.mark.parametrize("key", ["Enter", "y", "n", "1", "Space", "Tab", "BTab", "C-m", "C-j"])
def test_no_key_answers_a_dialog(fleet, one, workspace, key) -> None:
    drill(fleet, one, "/ask touch foo", "permission")
    with pytest.raises(DialogOpen, match="was not pressed"):
        fleet.messages.keys("one", "Down", "Up", key)
    assert fleet.messages.dialog("one")["dialog"] == "permission"
    fleet.messages.keys("one", "Escape")
    one.wait("idle", timeout=10)
    assert not (workspace / "foo").exists()


def test_a_question_that_was_answered_is_asked_no_more(fleet, one, monkeypatch) -> None:
    """Its hook said a moment ago that it asks, and says nothing else yet."""
    real = Practice.hear
    monkeypatch.setattr(activity, "FRESH_SECONDS", 600.0)
    drill(fleet, one, "/ask touch foo", "permission")

    def hear_questions(self, data):
        heard = real(self, data)
        return heard if heard is not None and heard.state == "waiting" else None

    monkeypatch.setattr(Practice, "hear", hear_questions)
    assert one.status()["activity_source"] == "hook"
    fleet.messages.answer("one", "allow")
    assert one.status()["activity"] != "waiting"


@pytest.mark.parametrize("says", ["hook", "title"])
def test_no_key_is_pressed_while_it_says_that_it_asks(fleet, one, monkeypatch, says) -> None:
    """A dialog takes keys before it is drawn, and what a program prints can look like a box."""
    if says == "title":
        monkeypatch.setattr(Practice, "read_title", lambda self, title: "waiting")
    else:
        name = f"{one.id}.{one.row['pane']['pid']}.1.json"
        payload = '{"hook_event_name": "PermissionRequest"}'
        # However long the two calls take, it is a fresh word.
        monkeypatch.setattr(activity, "FRESH_SECONDS", 600.0)
        Path(fleet._access.context.paths.spool, name).write_text(payload, encoding="utf-8")
    with pytest.raises(DialogOpen, match="its own dialog; Enter was not pressed"):
        fleet.messages.keys("one", "Enter")
    with pytest.raises(DialogOpen, match="nothing was interrupted"):
        one.interrupt()


def test_keys_where_nobody_can_see_or_nobody_is(fleet, one) -> None:
    fleet.sessions.create("cat", name="cat")
    with pytest.raises(DialogOpen, match="cannot see"):
        fleet.messages.keys("cat", "Enter")
    one.stop()
    with pytest.raises(PaneGone, match="'one' hears no key: it has ended") as found:
        fleet.messages.keys("one", "Escape")
    assert found.value.hint == "mam resume one"


def test_interrupt(fleet) -> None:
    session = fleet.sessions.create("practice", name="slow", args=["--speed", "2"])
    assert session.interrupt()["was"] == "idle"
    session.send("tell me something long")
    session.wait("working", timeout=10)
    done = session.interrupt()
    assert (done["was"], done["activity"]) == ("working", "idle")
    session.wait("idle", timeout=10)
    assert fleet.sessions.log("slow")[-1]["verb"] == "interrupt"


def test_an_interrupt_refuses_no_dialog(fleet, one) -> None:
    drill(fleet, one, "/ask touch foo", "permission")
    with pytest.raises(DialogOpen, match="interrupted"):
        one.interrupt()
    assert fleet.messages.dialog("one")["dialog"] == "permission"


def test_an_interrupt_that_nobody_can_prove(fleet) -> None:
    session = fleet.sessions.create("cat", name="cat")
    with pytest.raises(DeliveryUnconfirmed, match="C-c"):
        session.interrupt()
