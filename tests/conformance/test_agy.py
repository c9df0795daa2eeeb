"""mam with a stand-in for Antigravity: what it does with the little that is known of `agy`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from mam.adapters.tmux.client import Tmux
from mam.app.observation import conversations
from mam.core.errors import ConversationBusy, IllegalTransition, Refused, Usage

pytestmark = [pytest.mark.slow, pytest.mark.starts]
STAND_IN = Path(__file__).parent / "agy_stand_in.py"


@pytest.fixture
def agy(fleet, tmp_path, monkeypatch, tmux_server, until):
    """The fleet, with the stand-in on PATH under the name of the program."""
    program = tmp_path / "bin" / "agy"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    fleet._access.context.environ["PATH"] = os.environ["PATH"]
    return Person(fleet, Tmux(tmux_server), until)


class Person:
    """Somebody who types into the panes, as mam does not."""

    def __init__(self, fleet, tmux, until):
        self.fleet, self.tmux, self.until = fleet, tmux, until

    def create(self, name):
        session = self.fleet.sessions.create("agy", name=name)
        self.until(lambda: "STAND-IN" in session.read())
        return session

    def say(self, session, text, answer):
        row = self.fleet.sessions.get(session.id).row
        self.tmux.paste(row["pane"]["id"], text, mark=session.id, enter=True)
        self.until(lambda: answer in session.read())

    def own(self, session):
        return conversations.record_conversation(
            self.fleet._access.context, self.fleet.sessions.get(session.id).row
        )["agy_conversation_id_own"]


def files_of(home, conversation):
    return [path for path in (home / ".gemini").rglob("*") if conversation in path.name]


def test_the_stand_in_says_so_and_leaves_on_its_word(agy) -> None:
    session = agy.create("worker")
    agy.say(session, "hello there", "answer 1: hello there")
    row = agy.fleet.sessions.get(session.id).row
    agy.tmux.paste(row["pane"]["id"], "Exit", mark=session.id, enter=True)
    agy.until(lambda: session.status()["activity"] == "exited")


def test_s000_9_a_stop_types_nothing_and_says_so_and_a_resume_goes_on(agy, home) -> None:
    session = agy.create("worker")
    assert session.status()["activity"] == "unknown", "nothing of its screen is known"
    agy.say(session, "remember xylophone", "answer 1")
    stopped = session.stop().row
    assert stopped["status"] == "stopped"
    # The word would have been taken: the stand-in leaves on it, with status 0. It was hung up instead.
    assert "Exit" not in stopped["last_visible_note"]
    assert (stopped["termination_mode"], stopped["exit_status"]) == ("pane-closed", None)
    own = stopped["agy_conversation_id_own"]
    assert files_of(home, own)
    session.resume()
    assert session.status()["resume_tier"] == 1
    agy.say(session, "recall", "earlier: remember xylophone")
    agy.say(session, "and more", "answer 2")
    assert agy.own(session) == own

    os.kill(session.status()["pane"]["pid"], signal.SIGKILL)
    agy.until(lambda: session.status()["activity"] == "exited")
    session.resume()
    agy.say(session, "recall", "earlier: remember xylophone, and more")


def test_neighbours_keep_apart_and_a_purge_takes_one(agy, home) -> None:
    one, two = agy.create("one"), agy.create("two")
    agy.say(one, "remember xylophone", "answer 1")
    agy.say(two, "remember walrus", "answer 1")
    agy.say(one, "and more", "answer 2")
    # The map has one entry for both, the one that spoke last.
    own = {session.name: agy.own(session) for session in (one, two)}
    assert None not in own.values() and len(set(own.values())) == 2
    two.stop()
    one.stop(purge_conversation=True)
    assert not files_of(home, own["one"])
    assert files_of(home, own["two"])
    assert (home / ".gemini/antigravity-cli/cache/last_conversations.json").exists(), "it is shared"
    two.resume()
    agy.say(two, "recall", "earlier: remember walrus")


def test_a_sibling_that_said_nothing_takes_nothing(agy) -> None:
    silent, other = agy.create("silent"), agy.create("other")
    agy.say(other, "remember walrus", "answer 1")
    assert agy.own(silent) is None, "the map names the sibling's"
    assert agy.own(other)
    silent.stop()
    with pytest.raises(IllegalTransition, match="no conversation"):
        silent.resume()


def test_a_conversation_that_a_person_has_open_is_not_resumed(agy) -> None:
    session = agy.create("worker")
    agy.say(session, "remember xylophone", "answer 1")
    own = session.stop().row["agy_conversation_id_own"]
    person = agy.fleet.sessions.create("sh", args=["-c", f"agy --conversation {own}; sleep 60"])
    agy.say(person, "hello again", "answer 2")
    with pytest.raises(ConversationBusy, match="process"):
        session.resume()
    person.stop(force=True)
    session.resume()


def test_a_program_that_closes_its_database_has_no_proof(agy, monkeypatch) -> None:
    """Then only the map is left, and that a resume takes it is shown."""
    agy.fleet._access.context.environ["AGY_STAND_IN_CLOSES"] = "1"
    session = agy.create("worker")
    agy.say(session, "remember xylophone", "answer 1")
    assert agy.own(session) is None
    session.stop()
    session.resume()
    assert session.status()["resume_tier"] == 2
    agy.say(session, "recall", "earlier: remember xylophone")


def test_what_is_refused(agy) -> None:
    with pytest.raises(Refused, match="waits for a prompt"):
        agy.fleet.sessions.create("agy", prompt="hello")
    with pytest.raises(Refused, match="--permissions"):
        agy.fleet.sessions.create("agy", permissions="skip")
    with pytest.raises(Refused, match="--model"):
        agy.fleet.sessions.create("agy", model="some")
    with pytest.raises(Usage, match="--conversation"):
        agy.fleet.sessions.create("agy", args=["--conversation=1"])
    assert not agy.fleet.sessions.ls()["sessions"]
