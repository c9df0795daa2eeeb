"""Resume: the same row, the same history, never the conversation of another session."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux
from mam.core.errors import ConversationBusy, IllegalTransition, InvalidName, InvalidPath, SessionNotFound

QUICK = ["--speed", "0"]


def test_the_resumed_agent_has_its_history(fleet) -> None:
    session = fleet.sessions.create("practice", role="developer", args=QUICK, prompt="the word is walrus")
    session.wait("idle", timeout=10)
    session.stop()
    outcome = fleet.sessions.resume(session.name)
    row = outcome.session.row
    assert (row["id"], row["status"], row["resume_tier"], row["resume_count"]) == (
        session.id,
        "running",
        1,
        1,
    )
    assert row["stopped_at"] is None
    assert row["role"] == "developer"
    fleet.sessions.wait(session.name, "text:the word is walrus", timeout=10)


def test_after_a_kill_it_resumes_in_the_same_pane(fleet, until) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: process.identify(session.row["pane"]["pid"]) is None)
    assert fleet.sessions.ls()["sessions"][0]["drift"] == "A"
    outcome = fleet.sessions.resume(session.name)
    assert outcome.session.row["pane"]["id"] == session.row["pane"]["id"]
    assert outcome.session.row["pane"]["pid"] != session.row["pane"]["pid"]


def test_after_the_whole_server_died(fleet, tmux_server, until) -> None:
    names = [fleet.sessions.create("practice", args=QUICK, prompt="hello").name for _ in range(2)]
    stopped = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    stopped.stop()
    Tmux(tmux_server).kill_server()
    until(
        lambda: all(process.identify(fleet.sessions.get(name).row["pane"]["pid"]) is None for name in names)
    )
    assert fleet.sessions.resumable() == names
    assert fleet.sessions.resumable(stopped=True) == [*names, stopped.name]
    for name in names:
        assert fleet.sessions.resume(name).session.row["resume_tier"] == 1


def test_a_living_session_stays_as_it_is(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    outcome = fleet.sessions.resume(session.name)
    assert (outcome.changed, outcome.note) == (False, "already running")
    assert outcome.session.row["pane"]["pid"] == session.row["pane"]["pid"]


def test_a_chosen_id_without_history_is_launched_again_and_says_so(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK)
    chosen = session.row["conversations"][0]["id"]
    session.stop()
    outcome = fleet.sessions.resume(session.name)
    assert "no history" in (outcome.note or "")
    assert (outcome.session.row["resume_tier"], outcome.session.row["practice_session_id_own"]) == (
        None,
        None,
    )
    assert [entry["id"] for entry in outcome.session.row["conversations"]] == [chosen]


@pytest.mark.promise("P19")
def test_a_conversation_that_is_gone_keeps_its_id(fleet, home) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    session.stop()
    own = fleet.sessions.get(session.id).row["practice_session_id_own"]
    next((home / ".local/share/mam-practice").glob(f"{own}.jsonl")).unlink()
    with pytest.raises(IllegalTransition, match="not on disk"):
        fleet.sessions.resume(session.name)
    assert fleet.sessions.get(session.id).row["practice_session_id_own"] == own
    assert fleet.sessions.ls()["sessions"][0]["drift"] == "D"


@pytest.mark.promise("P20")
def test_never_a_siblings_conversation(fleet) -> None:
    sibling = fleet.sessions.create("practice", args=QUICK, prompt="mine alone")
    sibling.wait("idle", timeout=10)
    other = fleet.sessions.create("practice", args=QUICK)

    def forget_ids(transaction):
        row = transaction.get(other.id)
        transaction.put({**row, "conversations": []})

    other.stop()
    fleet._access.context.registry.change(forget_ids)
    with pytest.raises(IllegalTransition, match="no conversation"):
        fleet.sessions.resume(other.name)


@pytest.mark.promise("P18")
def test_a_conversation_that_a_live_process_holds_is_refused(fleet) -> None:
    holder = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    other = fleet.sessions.create("practice", args=QUICK)
    other.stop()
    own = holder.row["practice_session_id_own"]
    fleet._access.context.registry.change(
        lambda transaction: transaction.put({**transaction.get(other.id), "practice_session_id_own": own})
    )
    with pytest.raises(ConversationBusy) as caught:
        fleet.sessions.resume(other.name)
    assert str(holder.row["pane"]["pid"]) in str(caught.value)
    assert fleet.sessions.get(other.id).row["status"] == "stopped"


def test_a_purged_session_has_nothing_to_resume(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.stop(purge_conversation=True)
    with pytest.raises(IllegalTransition):
        fleet.sessions.resume(session.name)


def test_the_workspace_is_gone(fleet, home, tmux_server, tmp_path) -> None:
    import mam

    place = tmp_path / "short-lived"
    place.mkdir()
    with mam.open(str(fleet.root)) as other_fleet:
        other_fleet._access.context = other_fleet._access.context.replace(workspace=str(place))
        session = other_fleet.sessions.create("practice", args=QUICK, prompt="hello")
        session.stop()
        place.rmdir()
        with pytest.raises(InvalidPath):
            other_fleet.sessions.resume(session.name)
        assert other_fleet.sessions.get(session.id).row["status"] == "stopped"


def test_restart_keeps_the_conversation(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
    session.wait("idle", timeout=10)
    again = session.restart()
    assert again.row["practice_session_id_own"] == session.row["practice_session_id_own"]
    assert again.row["pane"]["pid"] != session.row["pane"]["pid"]


def test_fork_is_a_second_conversation_with_the_same_beginning(fleet) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="the word is walrus")
    session.wait("idle", timeout=10)
    fork = session.fork(role="reviewer")
    assert fork.row["parent"] == session.id
    assert fork.row["conversations"][0]["id"] != session.row["practice_session_id_own"]
    fork.wait("text:walrus", timeout=10)
    assert session.status()["tmux_alive"] is True


def test_unknown_names_are_refused(fleet) -> None:
    with pytest.raises(SessionNotFound):
        fleet.sessions.resume("nobody")


@pytest.mark.promise("P20")
def test_two_sessions_without_a_known_conversation_take_none_from_disk(fleet, monkeypatch) -> None:
    """A conversation in the workspace may belong to either session. A single session may take it."""
    sessions = [
        fleet.sessions.create("practice", args=QUICK, name=name, prompt="hello") for name in ("one", "two")
    ]
    for session in sessions:
        session.wait("idle", timeout=10)
        session.stop()

    def forget(transaction):
        for session in sessions:
            row = {**transaction.get(session.id), "practice_session_id_own": None, "conversations": []}
            transaction.put(row)
        transaction.set_identity("practice", None)

    fleet._access.context.registry.change(forget)
    for session in sessions:
        with pytest.raises(IllegalTransition, match="no conversation of it is known"):
            session.resume()
    fleet.sessions.forget("two")
    assert fleet.sessions.resume("one").session.row["resume_tier"] == 2


def test_an_adopted_session_gets_no_marks(fleet, tmux_server, monkeypatch) -> None:
    from mam.adapters.agents.practice import Practice

    monkeypatch.setattr(Practice, "session_variables", lambda self: {"MARK": "of this session"})
    assert (
        fleet.sessions.create("practice", args=QUICK, name="one").row["stores"]["MARK"] == "of this session"
    )
    Tmux(tmux_server)._call(["new-session", "-d", "-s", "theirs", "--", "sleep", "1000"])
    assert "MARK" not in fleet.sessions.adopt("theirs", agent="practice").row["stores"]


def test_a_resume_leaves_the_files_of_an_ended_job_alone(fleet, workspace) -> None:
    job = fleet.jobs.submit("write it down", agent="practice", agent_session="poet", args=["--speed", "0"])
    fleet.jobs.wait([job["job_id"]], timeout=60)
    fleet.sessions.stop("poet")
    shutil.rmtree(workspace / "delegate_job_logs")
    fleet.sessions.resume("poet")
    assert not (workspace / "delegate_job_logs").exists()


ORIGINAL_NAME = "lab_Paper-creator-practice"


@pytest.fixture
def original(fleet, tmux_server, workspace):
    """Return a function that writes a registry of the original system with one ended practice session."""

    def write(name: str) -> None:
        session = fleet.sessions.create("practice", name="first", args=QUICK, prompt="hello")
        conversation = session.stop().row["practice_session_id_own"]
        fleet.sessions.forget(session.name)
        context = fleet._access.context
        context.user_state.forget_root(context.root_id)
        Path(fleet.registry_file).unlink()
        shutil.rmtree(context.paths.state)
        row = {
            "name": name,
            "practice_session_id_own": conversation,
            "pane": {"pid": 4194000, "cmd": "practice", "cwd": str(workspace)},
            "start_command": "practice --speed 0",
            "status": "stopped",
            "tmux_server": tmux_server,
        }
        Path(fleet.registry_file).write_text(json.dumps({"tmux_sessions": [row]}), encoding="utf-8")

    return write


def test_s000_7_a_row_of_the_original_starts_again_under_its_name(fleet, original, tmux_server) -> None:
    original(ORIGINAL_NAME)
    outcome = fleet.sessions.resume(ORIGINAL_NAME, run_recorded=True)
    assert (outcome.changed, outcome.session.row["resume_tier"]) == (True, 1)
    assert [pane.session_name for pane in Tmux(tmux_server).panes().panes] == [ORIGINAL_NAME]
    fleet.sessions.stop(ORIGINAL_NAME)
    row = fleet.sessions.create(name=ORIGINAL_NAME).row
    assert (row["name"], row["status"], row["agent"]) == (ORIGINAL_NAME, "running", "practice")
    with pytest.raises(InvalidName, match="is not a session name"):
        fleet.sessions.create("practice", name="lab_New")


@pytest.mark.parametrize("name", ["my.work", "my work", "=x", "#(touch pwned)"])
def test_s000_7_a_name_that_tmux_cannot_have_names_the_way_out(fleet, original, tmux_server, name) -> None:
    original(name)
    for start in (lambda: fleet.sessions.resume(name), lambda: fleet.sessions.create(name=name)):
        with pytest.raises(InvalidName, match="mam cannot start a session named") as caught:
            start()
        assert "mam rename " in (caught.value.hint or "")
    assert Tmux(tmux_server).panes().panes == []
    fleet.sessions.rename(name, "my-work")
    assert fleet.sessions.resume("my-work", run_recorded=True).changed
