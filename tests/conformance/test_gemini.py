"""mam with the real Gemini CLI: what the other programs do not have."""

from __future__ import annotations

import json

import pytest
from tests.conformance.desk import Desk, wait_for
from tests.conformance.launch import start
from tests.conformance.program import PROGRAMS
from tests.conformance.replies import Shell
from tests.conformance.terminal import Terminals

from mam.adapters.agents.delete_files import remove
from mam.app.messages import enter_text
from mam.core.errors import ConversationBusy, DialogOpen, InvalidPrompt, NotReady

pytestmark = [pytest.mark.slow]
WORD = "remember the word xylophone"


@pytest.fixture
def kind():
    return "gemini"


@pytest.fixture
def desk(fresh_desk):
    return fresh_desk


def kind_of(desk: Desk):
    return desk.fleet._access.context.kind("gemini")


@pytest.mark.long
def test_words_arrive_as_they_are(desk: Desk) -> None:
    kind = kind_of(desk)
    (desk.workspace / "notes.txt").write_text("NOTES", encoding="utf-8")
    session = desk.create("worker", prompt="!echo is not run", env={"COLORTERM": "truecolor"})
    wait_for(lambda: desk.model.saw("!echo is not run"), session.read)
    for text in (
        "/etc/passwd is a file",
        "# no title",
        "?what",
        "ends in a backslash \\",
        "look at @notes",
        "two\nlines\tand a tab",
        "naïve 🙂 words",
    ):
        desk.rests(session)
        desk.say(session, kind.text_to_type(text) or "")
        assert desk.model.saw(text), text
    desk.rests(session)
    for text in ("/quit", " /clear now", "in\u200bvisible"):
        with pytest.raises(InvalidPrompt):
            desk.create("other", prompt=text)


def test_an_enter_that_makes_a_new_line(desk: Desk, monkeypatch) -> None:
    """mam sees the new line below its text, and presses Enter again.

    A Gemini that stands still while text and Enter arrive reads both together, and makes a new line of the
    Enter. When that happens depends on milliseconds, so here Ctrl-J makes the new line.
    """
    session = desk.create("worker")
    press, presses = enter_text._press_enter, []

    def press_new_line_first(context, row, look):
        presses.append(look.screen_state.is_on_new_line)
        if len(presses) > 1:
            return press(context, row, look)
        context.tmux(row["tmux_server"]).keys(row["pane"]["id"], ["C-j"], mark=row["id"], at=look.cursor)
        return True

    monkeypatch.setattr(enter_text, "_press_enter", press_new_line_first)
    receipt = session.send(WORD)
    assert (receipt["state"], receipt["attempts"]) == ("submitted", 1), receipt
    assert presses == [False, True]
    wait_for(lambda: desk.model.saw(WORD), session.read)
    desk.rests(session)
    assert [turn["text"] for turn in session.transcript()["turns"] if turn["role"] == "user"] == [WORD]


@pytest.mark.long
def test_a_resumed_conversation_outlives_the_next_start(desk: Desk) -> None:
    """It leaves an empty file of the same id, for which a new Gemini in the directory deletes both."""
    kind = kind_of(desk)
    one = desk.create("one", prompt=WORD)
    desk.rests(one)
    own = desk.own(one)
    one.stop()
    where = str(desk.workspace), one.row["stores"]
    # As if it had begun in another minute than that of the resume.
    (chat,) = (desk.home / ".gemini" / "tmp").glob(f"*/chats/*-{(own or '')[:8]}.jsonl")
    chat.rename(chat.with_name(f"session-2020-01-01T00-00-{(own or '')[:8]}.jsonl"))
    one.resume()
    ((store, path),) = kind.leftovers(*where)
    assert remove(store, path)
    two = desk.create("two", prompt="remember the word walrus")
    desk.rests(two)
    assert kind.on_disk(own or "", *where) is True
    desk.say(one, "which word was it")
    desk.rests(one)
    one.stop()
    one.resume()
    before = len(desk.model.saw("xylophone"))
    desk.say(one, "and again")
    assert len(desk.model.saw("xylophone")) > before


@pytest.mark.long
def test_a_session_that_nobody_spoke_to_before_another_started(desk: Desk) -> None:
    """The other one deletes its record: what is said in it later is seen, and cannot be resumed."""
    one, two = desk.create("one"), desk.create("two", prompt="remember the word walrus")
    desk.rests(two)
    desk.say(one, WORD)
    desk.rests(one)
    assert WORD in one.transcript()["turns"][0]["text"]
    assert desk.own(one) is None
    assert desk.own(two) is not None


@pytest.mark.long
def test_a_gemini_that_a_tool_starts_is_not_the_session(desk: Desk) -> None:
    session = desk.create("worker", prompt=WORD, permissions="skip")
    desk.rests(session)
    own = desk.own(session)
    desk.model.answer(Shell("gemini --skip-trust -p 'words of a child' > child.txt"))
    desk.say(session, "ask a child")
    wait_for(lambda: desk.model.saw("words of a child"), session.read, 60)
    wait_for(lambda: "pong" in (desk.workspace / "child.txt").read_text(encoding="utf-8"), session.read, 60)
    desk.rests(session)
    assert len(kind_of(desk).conversations(str(desk.workspace), session.row["stores"])) == 2
    assert desk.own(session) == own
    assert [turn["role"] for turn in session.transcript()["turns"]] == ["user", "assistant"] * 2


@pytest.mark.long
def test_a_conversation_that_a_person_has_open(desk: Desk, tmux_server, tmp_path) -> None:
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    own = desk.own(session) or ""
    session.stop()
    with Terminals(f"{tmux_server}-person", tmp_path) as terminals:
        pane = start(
            *("gemini", terminals, desk.workspace, desk.model), home=desk.home, arguments=["--resume", own]
        )
        pane.wait_for(PROGRAMS["gemini"].ready, 60)
        with pytest.raises(ConversationBusy, match=own):
            session.resume()
        # Killed while it takes the conversation up, it leaves a chat file without its history.
        wait_for(lambda: session.status()["resume"]["on_disk"], "the history in the chat file")
    wait_for(lambda: not kind_of(desk).holders(own, {}), "the end of the person's")
    session.resume()
    desk.becomes(session, "idle")


@pytest.mark.long
def test_a_store_elsewhere(desk: Desk, tmp_path, monkeypatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (desk.home / ".gemini").rename(elsewhere / ".gemini")
    session = desk.create("worker", prompt=WORD, env={"GEMINI_CLI_HOME": str(elsewhere)})
    desk.rests(session)
    own = desk.own(session)
    assert own and list(elsewhere.glob(f".gemini/tmp/*/chats/*-{own[:8]}.jsonl"))
    session.stop()
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "a third place"))
    session.resume()
    desk.say(session, "which word was it")
    assert len(desk.model.saw("xylophone")) >= 2


def test_without_a_login(desk: Desk, monkeypatch) -> None:
    (desk.home / ".gemini" / "settings.json").write_text("{}", encoding="utf-8")
    monkeypatch.delenv("GEMINI_API_KEY")
    with pytest.raises(DialogOpen, match="login"):
        desk.fleet.sessions.create("gemini", name="worker", timeout=60)
    session = desk.fleet.sessions.get("worker")
    desk.becomes(session, "waiting", "login")
    assert session.stop().row["status"] == "stopped"


def test_an_option_that_it_does_not_know(desk: Desk) -> None:
    with pytest.raises(NotReady, match="exit 1"):
        desk.create("worker", args=["--nosuchflag"])
    assert desk.fleet.sessions.get("worker").row["status"] == "terminated"


@pytest.mark.long
def test_nothing_of_the_users_is_edited(desk: Desk) -> None:
    settings, trusted = (desk.home / ".gemini" / name for name in ("settings.json", "trustedFolders.json"))
    before = json.loads(settings.read_text(encoding="utf-8")), trusted.read_bytes()
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    session.stop()
    assert (json.loads(settings.read_text(encoding="utf-8")), trusted.read_bytes()) == before
    assert not (desk.workspace / ".gemini").exists()
