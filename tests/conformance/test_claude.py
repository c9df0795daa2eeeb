"""mam with the real Claude Code: everything a session goes through, against a model on loopback."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.conformance.launch import KEY, guard
from tests.conformance.model_server import ModelServer
from tests.conformance.programs import Unavailable, program
from tests.conformance.replies import Question, Say, Shell

import mam
from mam.adapters.tmux.client import Tmux
from mam.app import conversations
from mam.core.errors import ConversationBusy, DialogOpen, InvalidPrompt, NotAllowed

pytestmark = pytest.mark.slow


def promptly():
    """Return how soon a state must be shown: within a second, unless the machine has other work."""
    return 1.0 if os.getloadavg()[0] < 2 * (os.cpu_count() or 1) else 10.0


class Desk:
    """A fleet, a model, and what a person at the terminal can do."""

    def __init__(self, fleet, model, workspace, home, server):
        self.fleet, self.model, self.workspace, self.home = fleet, model, workspace, home
        self.tmux = Tmux(server)

    def create(self, name, **options):
        return self.fleet.create("claude", **{"name": name, "permissions": "ask"} | options)

    def say(self, session, text):
        before = len(self.model.turns())
        row = self.fleet.get(session.id).row
        self.tmux.paste(row["pane"]["id"], text, mark=session.id, enter=True)
        if not text.startswith("/"):
            wait_for(lambda: len(self.model.turns()) > before, f"a turn for {text!r}: {session.read()}")

    def press(self, session, *keys):
        self.tmux.keys(self.fleet.get(session.id).row["pane"]["id"], list(keys), mark=session.id)

    def becomes(self, session, activity, waiting_for=None):
        """Both the quick listing and the thorough status say so, soon."""

        def shown():
            (listed,) = [one for one in self.fleet.ls()["sessions"] if one["id"] == session.id]
            both = (listed, session.status())
            return all((one["activity"], one["waiting_for"]) == (activity, waiting_for) for one in both)

        wait_for(shown, f"{activity}: {json.dumps(session.explain(), indent=1)}", promptly())

    def rests(self, session):
        """The turn is over on the screen as well, and in the transcript."""
        wait_for(
            lambda: said(session, "screen") == "idle" == said(session, "transcript"), session.explain(), 10
        )
        self.becomes(session, "idle")

    def capture(self, session):
        return conversations.capture(self.fleet.world, self.fleet.get(session.id).row)

    def is_trusted(self, *folders):
        known = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY], "rejected": []},
            "projects": {str(folder): {"hasTrustDialogAccepted": True} for folder in folders},
        }
        (self.home / ".claude.json").write_text(json.dumps(known), encoding="utf-8")


def said(session, source):
    return next((one["state"] for one in session.explain()["evidence"] if one["source"] == source), None)


def wait_for(condition, what, timeout=20.0):
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, f"waited in vain for {what}"
        time.sleep(0.02)


@pytest.fixture
def desk(home, tmux_server, workspace, monkeypatch):
    try:
        executable = program("claude")
    except Unavailable as reason:
        pytest.skip(str(reason))
    with ModelServer() as model:
        for name, value in {
            "PATH": f"{executable.parent}:{os.environ['PATH']}",
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": KEY,
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            **guard(model),
        }.items():
            monkeypatch.setenv(name, value)
        with mam.open(str(workspace)) as fleet:
            desk = Desk(fleet, model, workspace, home, tmux_server)
            desk.is_trusted(workspace)
            yield desk


def test_a_folder_that_is_not_trusted(desk) -> None:
    desk.is_trusted()
    with pytest.raises(DialogOpen, match="trust"):
        desk.create("worker")
    session = desk.fleet.get("worker")
    desk.becomes(session, "waiting", "trust")
    time.sleep(0.5)
    assert session.status()["waiting_for"] == "trust", "nobody answered it"
    assert session.stop().row["status"] == "stopped"
    desk.create("worker", trust=True)
    desk.becomes(session, "idle")


def test_activity(desk) -> None:
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    assert desk.model.saw("remember the word xylophone")
    row = desk.capture(session)
    assert row["claude_session_id_own"] == row["conversations"][0]["id"]
    assert row["claude_session_id_own"] in desk.model.turns()[0].headers.values()

    held = desk.model.gate()
    desk.model.answer(Say("one\ntwo\nthree\nfour\n", midway=held))
    desk.say(session, "count slowly")
    desk.becomes(session, "working")
    desk.press(session, "Escape")
    desk.becomes(session, "idle")
    held.set()

    desk.model.answer(Question())
    desk.say(session, "ask me something")
    desk.becomes(session, "waiting", "question")
    desk.press(session, "Escape")
    desk.becomes(session, "idle")

    desk.model.fail(500, 2)
    desk.say(session, "provoke retries")
    desk.becomes(session, "working")
    wait_for(lambda: ": provoke retries" in session.read(), "an answer after the retries")
    desk.becomes(session, "idle")
    desk.model.fail(400, 6)
    desk.say(session, "provoke an error")
    wait_for(lambda: "API Error: 400" in session.read(), session.read())
    desk.becomes(session, "idle")

    desk.say(session, "/model")
    desk.becomes(session, "waiting", "menu")
    desk.press(session, "Escape")
    desk.becomes(session, "idle")


def test_a_permission_dialog_and_the_end_of_it(desk) -> None:
    session = desk.create("worker")
    made = desk.workspace / "made"
    desk.model.answer(Shell("touch made; sleep 1; touch made-later"))
    desk.say(session, "make a file")
    desk.becomes(session, "waiting", "permission")
    # The hook speaks before the dialog is drawn, and one just drawn does not take keys yet.
    wait_for(lambda: said(session, "screen") == "waiting", "the dialog")
    time.sleep(0.5)
    desk.press(session, "Enter")
    wait_for(made.exists, "the tool")
    desk.becomes(session, "working")
    wait_for((desk.workspace / "made-later").exists, "the tool")
    desk.rests(session)

    desk.model.answer(Shell("touch must-not-be"))
    desk.say(session, "make another")
    desk.becomes(session, "waiting", "permission")
    wait_for(lambda: said(session, "screen") == "waiting", "the dialog")
    stopped = session.stop()
    assert stopped.row["status"] == "stopped"
    assert "Do you want to proceed?" in stopped.row["last_visible_note"]
    session.resume()
    desk.becomes(session, "idle")
    assert not (desk.workspace / "must-not-be").exists()


def test_stop_and_resume_with_the_history(desk) -> None:
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    stopped = session.stop().row
    assert (stopped["status"], stopped["termination_mode"], stopped["exit_status"]) == (
        "stopped",
        "graceful",
        0,
    )
    own = stopped["claude_session_id_own"]
    session.resume()
    desk.say(session, "which word was it")
    assert len(desk.model.saw("xylophone")) == 2
    desk.rests(session)

    os.kill(session.status()["pane"]["pid"], signal.SIGKILL)
    desk.becomes(session, "exited")
    assert list((desk.home / ".claude" / "sessions").glob("*.json")), "the stale state file is there"
    session.resume()
    desk.becomes(session, "idle")
    desk.say(session, "and again")
    assert len(desk.model.saw("xylophone")) == 3
    assert session.status()["claude_session_id_own"] == own
    assert len(session.status()["conversations"]) == 1


def test_clear_begins_a_conversation_that_is_resumed(desk) -> None:
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    first = desk.capture(session)["claude_session_id_own"]
    desk.say(session, "/clear")
    wait_for(lambda: desk.capture(session)["claude_session_id_own"] != first, session.read())
    second = session.status()["claude_session_id_own"]
    assert [one["id"] for one in session.status()["conversations"]] == [first, second]
    desk.say(session, "remember the word walrus")
    desk.rests(session)
    os.kill(session.status()["pane"]["pid"], signal.SIGKILL)
    desk.becomes(session, "exited")
    session.resume()
    desk.say(session, "which word was it")
    assert len(desk.model.saw("walrus")) == 2
    assert len(desk.model.saw("xylophone")) == 1
    assert session.status()["claude_session_id_own"] == second


def test_neighbours_forks_and_purge(desk) -> None:
    one = desk.create("one", prompt="remember the word xylophone")
    two = desk.create("two", prompt="remember the word walrus")
    for session in (one, two):
        desk.rests(session)
    fork = one.fork(name="fork")
    fork.stop()
    # Nothing was said in it yet, so Claude has written nothing: it is forked once more.
    fork.resume()
    desk.say(fork, "which word was it")
    assert len(desk.model.saw("xylophone")) == 2
    desk.rests(fork)
    own = {
        name: desk.fleet.stop(name).session.row["claude_session_id_own"] for name in ("one", "two", "fork")
    }
    assert len(set(own.values())) == 3

    config = desk.home / ".claude"
    one.stop(purge_conversation=True)
    left = [str(path) for path in config.rglob("*") if own["one"] in path.name]
    assert not left
    assert {path.stem for path in config.rglob("projects/*/*.jsonl")} == {own["two"], own["fork"]}
    two.resume()
    desk.say(two, "which word was it")
    assert len(desk.model.saw("walrus")) == 2


def test_a_conversation_that_a_person_has_open_is_not_resumed(desk) -> None:
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    own = session.stop().row["claude_session_id_own"]
    person = desk.fleet.create("bash", args=["-c", f"claude --resume {own}; sleep 60"])
    sessions = desk.home / ".claude" / "sessions"
    wait_for(lambda: any(own in path.read_text() for path in sessions.glob("*.json")), person.read())
    with pytest.raises(ConversationBusy, match="process"):
        session.resume()
    person.stop(force=True)
    session.resume()
    desk.becomes(session, "idle")


def test_a_folder_with_a_long_and_strange_name(desk, tmp_path) -> None:
    place = tmp_path / ("a.b_c é漢🙂 " + "x" * 100) / ("y" * 120)
    place.mkdir(parents=True)
    desk.is_trusted(place)
    with mam.open(str(place)) as fleet:
        session = fleet.create("claude", name="far", permissions="ask", prompt="hello from afar")
        wait_for(lambda: session.status()["resume"]["on_disk"], "the transcript where mam looks for it")
        session.stop()
        assert fleet.world.kind("claude").conversations(str(place), {"HOME": str(desk.home)})


def test_what_the_child_inherits_and_what_is_refused(desk, monkeypatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "of another")
    with pytest.raises(InvalidPrompt):
        desk.create("worker", prompt="/exit")
    if os.geteuid() == 0:
        with pytest.raises(NotAllowed, match="root"):
            desk.create("worker", permissions="skip")
    assert not desk.fleet.ls()["sessions"]
    session = desk.create("worker", permissions="skip", env={"IS_SANDBOX": "1"}, prompt="ends in \\")
    assert desk.model.turns()[-1].last_text() == "ends in \\"
    desk.rests(session)
    desk.model.answer(Shell("touch unasked", asks=False))
    desk.say(session, "make a file")
    wait_for((desk.workspace / "unasked").exists, "the tool that nobody was asked about")
    assert b"CLAUDECODE=" not in Path(f"/proc/{session.row['pane']['pid']}/environ").read_bytes()
    assert set(json.loads((desk.home / ".claude.json").read_text())["projects"]) == {str(desk.workspace)}
    assert not (desk.home / ".claude" / "settings.json").exists(), "nothing of the user's is configured"
