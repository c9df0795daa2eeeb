"""What only Hermes Agent has; what it shares with the others is in `test_life.py`."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from tests.conformance.desk import WORD, wait_for
from tests.conformance.install import installed
from tests.conformance.replies import Shell

from mam.core.errors import DialogOpen, InvalidPrompt, NotAllowed, NotReady, Usage

pytestmark = [pytest.mark.slow]


@pytest.fixture
def kind():
    return "hermes"


@pytest.fixture
def desk(fresh_desk):
    return fresh_desk


def test_an_option_that_it_does_not_know(desk) -> None:
    with pytest.raises(NotReady, match="unrecognized arguments: --nosuch"):
        desk.create("worker", args=["--nosuch"])
    row = desk.fleet.sessions.get("worker").row
    assert (row["status"], row["exit_status"]) == ("terminated", 2)


def test_it_is_not_configured(desk) -> None:
    """It asks to be set up, and nobody answers that."""
    (desk.home / ".hermes" / "config.yaml").unlink()
    with pytest.raises(DialogOpen, match="login"):
        desk.create("worker")
    session = desk.fleet.sessions.get("worker")
    desk.becomes(session, "waiting", "login")
    assert session.stop().row["status"] == "stopped"


@pytest.mark.long
def test_a_menu_and_a_confirmation_are_no_box(desk) -> None:
    """The model picker leaves an arrow that looks like an empty prompt: nothing may be typed there."""
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    desk.say(session, "/model", is_command=True)
    desk.becomes(session, "waiting", "menu")
    desk.press(session, "Escape")
    desk.becomes(session, "idle")
    desk.say(session, "/new", is_command=True)
    desk.becomes(session, "waiting", "confirm")
    stopped = session.stop().row
    assert "Approve Once" in stopped["last_visible_note"]
    assert stopped["hermes_session_id_own"]
    session.resume()
    desk.say(session, "which word was it")
    assert len(desk.model.saw("xylophone")) >= 2, "nobody confirmed"


@pytest.mark.long
def test_a_crash_before_anybody_looked(desk) -> None:
    """The session's source tells which conversation was its own, also when its process is gone."""
    session, other = desk.create("worker"), desk.create("other")
    for one, word in ((session, "xylophone"), (other, "walrus")):
        desk.say(one, f"remember the word {word}")
        desk.rests(one)
    assert desk.fleet.sessions.get(session.id).row["hermes_session_id_own"] is None
    desk.kill(session)
    session.resume()
    desk.say(session, "which word was it")
    assert len(desk.model.saw("xylophone")) == 2
    assert len(desk.model.saw("walrus")) == 1


def sources(desk):
    database = desk.home / ".hermes" / "state.db"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        return [row[0] for row in connection.execute("select source from sessions order by started_at")]


@pytest.mark.long
def test_a_hermes_that_a_tool_starts_is_not_the_sessions(desk) -> None:
    """It carries the same source, and begins a conversation in the same database."""
    session = desk.create("worker", prompt=WORD)
    desk.rests(session)
    own = desk.own(session)
    desk.model.answer(Shell(f"{installed('hermes')} chat -Q -q 'a word from within'", asks=False))
    desk.say(session, "start another")
    wait_for(lambda: len(sources(desk)) == 2, session.read, 90)
    desk.rests(session)
    assert len(set(sources(desk))) == 1, "the source alone would not tell them apart"
    assert desk.own(session) == own
    assert len(session.status()["conversations"]) == 1


def test_what_reaches_the_model_and_what_is_refused(desk) -> None:
    with pytest.raises(InvalidPrompt):
        desk.create("worker", prompt="/exit")
    with pytest.raises(InvalidPrompt):
        desk.create("worker", prompt="see @file:secret")
    with pytest.raises(NotAllowed, match="approvals"):
        desk.create("worker", permissions="ask")
    with pytest.raises(Usage, match="--resume"):
        desk.create("worker", args=["--resume", "x"])
    assert not desk.fleet.sessions.ls()["sessions"]
    prompt = "!first\n\ttab @nofile #x\n" + "a long line of words " * 500 + "\nlast \\"
    session = desk.create("worker", prompt=prompt, permissions="skip", model="other-model")
    wait_for(desk.model.turns, session.read)
    assert prompt in desk.model.turns()[-1].texts()
    assert desk.model.turns()[-1].body["model"] == "other-model"
    desk.rests(session)
    desk.model.answer(Shell("touch unasked"))
    desk.say(session, "make a file")
    wait_for((desk.workspace / "unasked").exists, "the tool that nobody was asked about")
    config = (desk.home / ".hermes" / "config.yaml").read_text(encoding="utf-8")
    assert "other-model" not in config, "nothing of the user's is configured"
