"""What only Claude Code has; what it shares with the others is in `test_life.py`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path

import pytest
from tests.conformance.desk import said, wait_for
from tests.conformance.replies import Say, Shell

import mam
from mam.adapters.agents.claude import files, transcript
from mam.app.messages.delivery import deliver_all
from mam.core import caller as callers
from mam.core.errors import ConversationBusy, InvalidPrompt, NotAllowed, NotReady

pytestmark = [pytest.mark.slow]


@pytest.fixture
def kind():
    return "claude"


@pytest.fixture
def desk(fresh_desk):
    return fresh_desk


def test_a_menu(desk) -> None:
    session = desk.create("worker")
    desk.say(session, "/model", is_command=True)
    desk.becomes(session, "waiting", "menu")
    desk.press(session, "Escape")
    desk.becomes(session, "idle")


def test_the_id_is_the_one_that_the_server_sees(desk) -> None:
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    row = desk.capture(session)
    assert row["claude_session_id_own"] == row["conversations"][0]["id"]
    assert row["claude_session_id_own"] in desk.model.turns()[0].headers.values()


def test_a_killed_agent_leaves_a_state_file_that_says_nothing(desk) -> None:
    """Neither under its own name, nor where the next process has got the same number."""
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    held = desk.model.gate()
    desk.model.answer(Say("one\ntwo\nthree\nfour\n", midway=held))
    desk.say(session, "count slowly")
    desk.sees(session, "state-file", "working")
    desk.kill(session)
    held.set()
    folder = desk.home / ".claude" / "sessions"
    (stale,) = folder.glob("*.json")
    left = json.loads(stale.read_text(encoding="utf-8"))
    assert left["status"] == "busy"
    assert session.status()["activity"] == "exited"
    session.resume()
    desk.becomes(session, "idle")
    assert said(session, "state-file") != "working"
    desk.say(session, "which word was it")
    desk.rests(session)
    assert desk.own(session) == left["sessionId"]
    pid = desk.fleet.sessions.get(session.id).row["pane"]["pid"]
    # It would write the file anew.
    os.kill(pid, signal.SIGSTOP)
    for forged in (left, {**left, "pid": pid}):
        (folder / f"{pid}.json").write_text(json.dumps(forged), encoding="utf-8")
        assert said(session, "state-file") is None
        desk.becomes(session, "idle")
    os.kill(pid, signal.SIGCONT)


def test_a_cleared_conversation_without_a_message(desk) -> None:
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    first = desk.own(session)
    desk.say(session, "/clear", is_command=True)
    wait_for(lambda: desk.own(session) != first, session.read)
    assert [one["id"] for one in session.status()["conversations"]] == [first, desk.own(session)]


@pytest.mark.long
def test_a_fork_without_a_message(desk) -> None:
    """Claude has written nothing of it yet: it is forked once more."""
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    fork = session.fork(name="fork")
    fork.stop()
    fork.resume()
    desk.say(fork, "which word was it")
    assert len(desk.model.saw("xylophone")) == 2


@pytest.mark.long
def test_a_child_that_inherits_the_environment(desk) -> None:
    """Its state, and what the session's own hooks say of it, are not the session's."""
    session = desk.create("worker", permissions="skip", env={"IS_SANDBOX": "1"}, prompt="hello")
    desk.rests(session)
    own, conversations = desk.own(session), session.status()["conversations"]
    words = Path(f"/proc/{session.row['pane']['pid']}/cmdline").read_text(encoding="utf-8").split("\0")
    settings = shlex.quote(words[words.index("--settings") + 1])
    child = f"claude --settings {settings} -p 'I am the child' > child.txt"
    hold = "while [ ! -e go ]; do sleep .1; done"
    desk.model.answer(Shell(f"{child}; touch child-done; {hold}", asks=False))
    desk.say(session, "start a child")
    wait_for((desk.workspace / "child-done").exists, session.read, 40)
    assert desk.model.saw("I am the child")
    # The child's last word was that its turn is over; the session's turn is not.
    desk.becomes(session, "working")
    assert said(session, "hook") == "working"
    assert desk.own(session) == own
    (desk.workspace / "go").touch()
    desk.rests(session)
    assert desk.own(session) == own
    assert session.status()["conversations"] == conversations


def test_a_conversation_that_a_person_has_open_is_not_resumed(desk) -> None:
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    own = session.stop().row["claude_session_id_own"]
    person = desk.fleet.sessions.create("bash", args=["-c", f"claude --resume {own}; sleep 60"])
    sessions = desk.home / ".claude" / "sessions"
    wait_for(lambda: any(own in path.read_text() for path in sessions.glob("*.json")), person.read)
    with pytest.raises(ConversationBusy, match="process"):
        session.resume()
    person.stop(force=True)
    session.resume()
    desk.becomes(session, "idle")


@pytest.mark.long
def test_a_moved_configuration(desk, tmp_path, monkeypatch) -> None:
    """A resume uses the folder of the launch, whatever the caller has set by then."""
    moved = tmp_path / "moved"
    moved.mkdir()
    (desk.home / ".claude.json").rename(moved / ".claude.json")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(moved))
    with mam.open(str(desk.workspace)) as fleet:
        session = fleet.sessions.create(
            "claude", name="worker", permissions="ask", prompt="remember the word xylophone"
        )
        session.wait("idle", timeout=20)
        session.stop()
    monkeypatch.delenv("CLAUDE_CONFIG_DIR")
    assert not (desk.home / ".claude").exists()
    with mam.open(str(desk.workspace)) as fleet:
        session = fleet.sessions.get("worker")
        session.resume()
        desk.say(session, "which word was it")
        assert len(desk.model.saw("xylophone")) == 2


def test_a_resume_that_fails(desk) -> None:
    """What the program says about it is the error, and the row says that it ended."""
    session = desk.create("worker", prompt="remember the word xylophone")
    desk.rests(session)
    session.stop()
    (path,) = desk.home.glob(f".claude/projects/*/{session.status()['claude_session_id_own']}.jsonl")
    line = next(line for line in path.read_text().splitlines() if '"type":"user"' in line)
    path.write_text(json.dumps({"type": "user", "message": json.loads(line)["message"]}) + "\n")
    with pytest.raises(NotReady, match="No conversation found"):
        session.resume()
    assert session.status()["status"] == "terminated"


def test_a_folder_with_a_long_and_strange_name(desk, tmp_path) -> None:
    place = tmp_path / ("a.b_c é漢🙂 " + "x" * 100) / ("y" * 120)
    place.mkdir(parents=True)
    desk.program.trust(desk.home, place)
    with mam.open(str(place)) as fleet:
        session = fleet.sessions.create("claude", name="far", permissions="ask", prompt="hello from afar")
        wait_for(lambda: session.status()["resume"]["on_disk"], "the transcript where mam looks for it")
        session.stop()
        assert fleet._access.context.kind("claude").conversations(str(place), {"HOME": str(desk.home)})


def test_what_the_child_inherits_and_what_is_refused(desk, monkeypatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "of another")
    with pytest.raises(InvalidPrompt):
        desk.create("worker", prompt="/exit")
    if os.geteuid() == 0:
        with pytest.raises(NotAllowed, match="root"):
            desk.create("worker", permissions="skip")
    assert not desk.fleet.sessions.ls()["sessions"]
    session = desk.create("worker", permissions="skip", env={"IS_SANDBOX": "1"}, prompt="ends in \\")
    wait_for(desk.model.turns, session.read)
    assert desk.model.turns()[-1].last_text() == "ends in \\"
    desk.rests(session)
    desk.model.answer(Shell("touch unasked", asks=False))
    desk.say(session, "make a file")
    wait_for((desk.workspace / "unasked").exists, "the tool that nobody was asked about")
    assert b"CLAUDECODE=" not in Path(f"/proc/{session.row['pane']['pid']}/environ").read_bytes()
    assert set(json.loads((desk.home / ".claude.json").read_text())["projects"]) == {str(desk.workspace)}
    assert not (desk.home / ".claude" / "settings.json").exists(), "nothing of the user's is configured"


def test_no_key(desk, monkeypatch) -> None:
    """Not logged in it looks idle, and says so when it is asked something."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with mam.open(str(desk.workspace)) as fleet:
        session = fleet.sessions.create("claude", name="worker", permissions="ask", prompt="hello")
        wait_for(lambda: "/login" in session.read(), session.read)
        desk.becomes(session, "idle")


def said_to(fleet, name: str) -> str:
    """What was submitted to a session."""
    taken = ("submitted", "queued")
    return "\n".join(one["text"] for one in fleet.messages.inbox(name) if one["state"] in taken)


@pytest.mark.long
def test_a_member_of_a_team(desk) -> None:
    """Beside the caller, with the colour and the name of its role: its own record and screen show them."""
    boss = desk.create("boss")
    beside = {**os.environ, "TMUX_PANE": boss.row["pane"]["id"], "IS_SANDBOX": "1"}
    tmux = desk.fleet._access.context.tmux(boss.row["tmux_server"])
    beside["TMUX"] = f"{tmux.socket_path()},{boss.row['pane']['server_pid']},0"
    report = shlex.join([sys.executable, "-m", "mam", "report", "--result", "remembered"])
    desk.model.answer(Shell(f"{report} > report.txt 2>&1", asks=False))
    with mam.open(str(desk.workspace), environ=beside) as fleet:
        # The process of the tests does not run in the pane of the boss, and would count as unknown.
        fleet._access._caller = callers.session(boss.row["id"], os.getpid())
        done = fleet.teams.spawn("dev", agent="claude", task="remember the word xylophone")
        row = done["session"]
        assert [(one["state"], one["proven"]) for one in done["identity"]] == [("submitted", True)] * 2
        assert done["receipt"]["evidence"] in ("hook", "transcript")
        wait_for(lambda: desk.model.saw("xylophone"), lambda: fleet.sessions.read("dev"))
        found = files.find_transcript(row["conversations"][0]["id"], row["stores"])
        assert transcript.identity(found) == ("green", "dev-agent")
        pane = tmux.pane(row["pane"]["id"])
        assert pane.window_id == tmux.pane(boss.row["pane"]["id"]).window_id
        assert "dev-agent ─" in fleet.sessions.read("dev") and pane.title.endswith("dev-agent")

        # The master gets its own as well, as soon as it rests.
        def is_crowned() -> bool:
            deliver_all(fleet._access.context)
            return "master-agent ─" in boss.read()

        wait_for(is_crowned, lambda: str(fleet.messages.inbox("boss")))
        # It reports by itself, as it was told to, from a shell of its own.
        wait_for((desk.workspace / "report.txt").exists, lambda: fleet.sessions.read("dev"), 40)
        wait_for(
            lambda: "STEP COMPLETE: TASK-001 | result: remembered" in said_to(fleet, "boss"), boss.read, 40
        )
        wait_for(
            lambda: fleet.sessions.status("dev")["activity"] == "idle", lambda: fleet.sessions.read("dev")
        )
        closed = fleet.teams.close("dev")
        assert closed["session"]["termination_mode"] == "graceful"
        assert len([one for one in tmux.panes().panes if one.window_id == pane.window_id]) == 1
        assert fleet.sessions.get("boss").row["status"] == "running"
