"""Create: names, readiness, dialogs, prompts, and that a failure leaves nothing behind."""

import json
import os
import signal
from pathlib import Path

import pytest

import mam
from mam.adapters.tmux.client import Tmux
from mam.adapters.tmux.error_translation import PaneChanged
from mam.app.sessions import first_prompt
from mam.core.errors import (
    AgentMissing,
    DeliveryUnconfirmed,
    DialogOpen,
    InvalidName,
    InvalidPath,
    InvalidPrompt,
    NameTaken,
    NotAllowed,
    NotReady,
    Refused,
    TmuxMissing,
    Usage,
)
from mam.core.root_mark import directory_of

QUICK = ["--speed", "0"]


def panes(server: str):
    return Tmux(server).panes(full=True).panes


def process_environment(pid: int) -> dict[str, str]:
    items = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(item.split("=", 1) for item in items if item)


def test_the_row_the_file_and_tmux_agree(fleet, tmux_server, workspace) -> None:
    session = fleet.sessions.create("practice", role="developer", args=QUICK)
    assert session.name == "demo-app-creator-practice"
    row = session.row
    (pane,) = panes(tmux_server)
    assert (row["pane"]["id"], row["pane"]["pid"], row["tmux_session_id"]) == (
        pane.id,
        pane.pid,
        pane.session_id,
    )
    assert (pane.session_name, pane.mark, directory_of(pane.root)) == (
        session.name,
        session.id,
        str(workspace),
    )
    assert row["status"] == "running"
    assert row["start_command"] == ["practice", "--speed", "0"]
    assert row["conversations"][0]["source"] == "chosen"
    assert row["practice_session_id_own"] is None
    text = Path(fleet.registry_file).read_text(encoding="utf-8")
    assert f"name: {session.name}" in text
    assert session.status()["activity"] == "idle"


def test_the_agent_has_the_callers_environment_and_its_own_identity(fleet, workspace, monkeypatch) -> None:
    first = fleet.sessions.create("practice", args=QUICK)
    monkeypatch.setenv("COLOUR", "set after the server was started")
    monkeypatch.setenv("MAM_JOB_ID", "not ours to pass on")
    second = fleet.sessions.create("practice", args=QUICK, env={"EXTRA": "x;y #(z)"})
    env = process_environment(second.row["pane"]["pid"])
    assert env["COLOUR"] == "set after the server was started"
    assert env["EXTRA"] == "x;y #(z)"
    assert (env["MAM_SESSION"], env["MAM_ROOT"]) == (second.id, str(workspace))
    assert "MAM_JOB_ID" not in env
    assert env["TMUX_PANE"] == second.row["pane"]["id"]
    assert "COLOUR" not in process_environment(first.row["pane"]["server_pid"])
    assert not [key for key in process_environment(first.row["pane"]["server_pid"]) if key.startswith("MAM_")]


def test_no_argv_holds_text_of_the_caller(fleet, tmux_server) -> None:
    session = fleet.sessions.create("human", prompt="the secret word is walrus", env={"TOKEN": "hunter2"})
    argv = Path(f"/proc/{session.row['pane']['server_pid']}/cmdline").read_bytes()
    argv += Path(f"/proc/{session.row['pane']['pid']}/cmdline").read_bytes()
    assert b"walrus" not in argv
    assert b"hunter2" not in argv
    assert not list(Path(fleet._access.context.paths.launches).iterdir())


def test_a_default_name_that_is_alive_gets_a_number_and_one_given_by_hand_is_refused(fleet) -> None:
    fleet.sessions.create("practice", args=QUICK)
    assert fleet.sessions.create("practice", args=QUICK).name == "demo-app-2-creator-practice"
    with pytest.raises(NameTaken):
        fleet.sessions.create("practice", name="demo-app-creator-practice")


def test_a_name_that_has_ended_is_started_anew_in_the_same_row(fleet) -> None:
    first = fleet.sessions.create("practice", name="worker", role="developer", args=QUICK, prompt="hello")
    old = first.row["conversations"][-1]["id"]
    first.stop()
    again = fleet.sessions.create(name="worker")
    assert (again.id, again.row["role"]) == (first.id, "developer")
    assert again.row["start_command"] == ["practice", "--speed", "0"]
    assert again.row["conversations"][-1]["id"] != old
    assert again.row["conversations"][0]["id"] == old
    assert again.row["practice_session_id_own"] is None
    assert len(fleet.sessions.list()) == 1


def test_the_role_never_changes(fleet) -> None:
    fleet.sessions.create("practice", name="worker", role="developer", args=QUICK).stop()
    with pytest.raises(Refused, match="developer"):
        fleet.sessions.create(name="worker", role="reviewer")


def test_the_first_prompt_is_proven_by_the_transcript(fleet, home) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="say hello\nin two lines; #(x) 'q' \\")
    path = home / ".local/share/mam-practice" / f"{session.row['practice_session_id_own']}.jsonl"
    first = json.loads(path.read_text(encoding="utf-8").splitlines()[0])
    assert (first["type"], first["text"]) == ("user", "say hello\nin two lines; #(x) 'q' \\")


def test_a_prompt_that_looks_like_a_command_reaches_the_agent_as_words(fleet, home) -> None:
    session = fleet.sessions.create("practice", args=QUICK, prompt="/exit is what I typed")
    path = home / ".local/share/mam-practice" / f"{session.row['practice_session_id_own']}.jsonl"
    assert json.loads(path.read_text(encoding="utf-8").splitlines()[0])["text"] == " /exit is what I typed"
    assert session.status()["tmux_alive"] is True


def test_a_first_prompt_that_another_process_still_types(fleet, monkeypatch) -> None:
    """The resident may have begun to type it, and be suspended in the middle of that."""
    real = first_prompt.send

    def still_typed(*arguments, **options):
        return {**real(*arguments, **options), "state": "held", "reason": None}

    monkeypatch.setattr(first_prompt, "send", still_typed)
    with pytest.raises(NotReady, match="still getting the prompt from another process") as caught:
        fleet.sessions.create("practice", args=QUICK, prompt="run the tests")
    assert "not typed" not in caught.value.message, "who reads that sends it again"
    assert fleet.sessions.get(caught.value.session["id"]).row["status"] == "running"


def test_a_prompt_that_nothing_proves_says_why(fleet, monkeypatch) -> None:
    monkeypatch.setattr(
        first_prompt,
        "send",
        lambda *_, **__: {"message_id": "m_0", "state": "unconfirmed", "reason": "Enter was not pressed"},
    )
    with pytest.raises(DeliveryUnconfirmed, match="Enter was not pressed"):
        fleet.sessions.create("practice", args=QUICK, prompt="run the tests")


def test_a_dialog_is_reported_and_not_answered(fleet, tmux_server) -> None:
    with pytest.raises(DialogOpen) as caught:
        fleet.sessions.create("practice", args=["--trust-dialog"], prompt="run the tests")
    assert caught.value.exit_code == 2
    session = fleet.sessions.get(caught.value.session["id"])
    status = session.status()
    assert (status["status"], status["activity"], status["waiting_for"]) == ("running", "waiting", "trust")
    assert "Yes, I trust this folder" in session.read()


def test_trust_is_given_when_the_caller_asks_for_it(fleet) -> None:
    session = fleet.sessions.create("practice", args=["--trust-dialog", *QUICK], trust=True)
    assert session.status()["activity"] == "idle"


def test_trust_is_given_only_to_the_dialog_that_was_seen(fleet, monkeypatch) -> None:
    """mam presses the keys only while the cursor is where it was when mam saw the dialog."""
    real, cursors = Tmux.keys, []

    def keys(self, pane_id, keys, *, mark, at=None):
        cursors.append(at)
        if len(cursors) == 1:
            raise PaneChanged("something else is drawn there")
        real(self, pane_id, keys, mark=mark, at=at)

    monkeypatch.setattr(Tmux, "keys", keys)
    session = fleet.sessions.create("practice", args=["--trust-dialog", *QUICK], trust=True)
    assert session.status()["activity"] == "idle"
    assert len(cursors) == 2 and None not in cursors


def test_an_agent_that_ends_while_booting_is_reported_with_its_last_output(fleet) -> None:
    with pytest.raises(NotReady, match=r"ended at once \(exit 2\): .*Error: --session-id") as caught:
        fleet.sessions.create("practice", args=["--resume", "00000000-0000-0000-0000-000000000000"])
    row = fleet.sessions.get(caught.value.session["id"]).row
    assert (row["status"], row["exit_status"], row["termination_mode"]) == ("terminated", 2, "auto-detected")


def test_create_returns_at_once_without_wait(fleet) -> None:
    session = fleet.sessions.create("practice", args=["--slow-start", "30"], wait=False)
    assert session.status()["activity"] == "booting"


def test_time_runs_out_and_the_session_stays(fleet) -> None:
    with pytest.raises(NotReady, match=r"0\.3 s"):
        fleet.sessions.create("practice", name="slow", args=["--slow-start", "30"], timeout=0.3)
    assert fleet.sessions.get("slow").status()["tmux_alive"] is True


def test_any_program_by_name(fleet) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    assert session.row["agent"] == "sleep"
    assert session.row["pane"]["cmd"] == "sleep"
    status = session.status()
    assert (status["activity"], status["resume"]["id"]) == ("unknown", None)


def test_nothing_is_typed_into_a_program_that_cannot_be_seen(fleet, workspace) -> None:
    script = workspace / "trust.sh"
    script.write_text(
        "echo 'Do you trust this folder? [Y/n]'; read answer; touch answered\n", encoding="utf-8"
    )
    with pytest.raises(Refused, match="cannot see"):
        fleet.sessions.create("sh", args=[str(script)], prompt="hello")
    assert fleet.sessions.names() == []
    assert not (workspace / "answered").exists()


@pytest.mark.parametrize("model", ["", "--yolo", "-m", "a b", "a\nb", "x" * 101])
def test_an_invalid_model_is_refused(fleet, model) -> None:
    """Such a text would be another option of the program, and could lift its permissions."""
    with pytest.raises(Usage, match="name of a model"):
        fleet.sessions.create("practice", model=model)
    assert fleet.sessions.list() == []


@pytest.mark.parametrize("options", [{"permissions": "skip"}, {"model": "large"}])
def test_options_that_would_be_ignored_are_refused(fleet, options) -> None:
    with pytest.raises(Refused, match="does not know"):
        fleet.sessions.create("sleep", args=["1000"], **options)


def test_a_prompt_needs_the_wait(fleet) -> None:
    with pytest.raises(Usage):
        fleet.sessions.create("practice", prompt="hello", wait=False)


def test_a_person_gets_a_shell_with_the_instructions(fleet, monkeypatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    session = fleet.sessions.create("human", role="tester", prompt="try the login page")
    status = fleet.sessions.wait(session.name, "text:try the login page", timeout=10)
    assert status["status"] == "running"


@pytest.mark.parametrize(
    "name", ["#(touch pwned)", "a;b", "../x", "a\nb", "a\u202eb", "x" * 1_000_000, "-R", "=a", ""]
)
def test_bad_names_are_refused_before_anything_happens(fleet, tmux_server, name) -> None:
    with pytest.raises(InvalidName):
        fleet.sessions.create("practice", name=name)
    assert not fleet._access.context.paths.exists()
    assert panes(tmux_server) == []


def test_a_program_that_is_not_there(fleet, tmux_server) -> None:
    with pytest.raises(AgentMissing) as caught:
        fleet.sessions.create("pratice")
    assert caught.value.exit_code == 2
    assert "practice" in (caught.value.hint or "")
    assert fleet.sessions.list() == []
    assert panes(tmux_server) == []


def test_a_workspace_that_is_gone(home, tmux_server, tmp_path) -> None:
    with pytest.raises(InvalidPath):
        mam.open(str(tmp_path / "nowhere"))


def test_tmux_is_missing(fleet, monkeypatch, tmp_path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    with (
        mam.open(str(fleet.root), environ={**os.environ, "PATH": str(empty)}) as blind,
        pytest.raises(TmuxMissing),
    ):
        blind.sessions.create("practice")
    assert fleet.sessions.list() == []


def test_tmux_is_too_old(fleet, tmp_path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tmux").write_text("#!/bin/sh\necho tmux 3.1c\n", encoding="utf-8")
    (folder / "tmux").chmod(0o755)
    with (
        mam.open(str(fleet.root), environ={**os.environ, "PATH": str(folder)}) as old,
        pytest.raises(TmuxMissing, match=r"3\.1"),
    ):
        old.sessions.create("practice")
    assert fleet.sessions.list() == []


@pytest.mark.parametrize("prompt", ["", "   \n", "\x1b", "bad \udc90", "x" * 1_100_000])
def test_an_invalid_prompt_is_refused(fleet, prompt) -> None:
    with pytest.raises(InvalidPrompt):
        fleet.sessions.create("practice", prompt=prompt)


def test_a_tmux_session_that_is_not_ours_is_left_alone(fleet, tmux_server) -> None:
    fleet.sessions.create("sleep", name="first", args=["1000"])
    tmux, row = Tmux(tmux_server), fleet.sessions.get("first").row
    tmux.rename_session(row["tmux_session_id"], "taken")
    with pytest.raises(NameTaken, match="with the pane of 'first'") as refused:
        fleet.sessions.create("practice", name="taken")
    assert str(refused.value.hint).endswith("mam rename first taken")
    tmux.mark(row["pane"]["id"], row["id"], "0123456789abcdef /elsewhere")
    with pytest.raises(NameTaken, match="not ours"):
        fleet.sessions.create("practice", name="taken")
    assert [session.name for session in fleet.sessions.list()] == ["first"]


def test_a_name_that_another_root_has_names_that_root(fleet, tmp_path) -> None:
    fleet.sessions.create("practice", name="api", args=QUICK)
    place = tmp_path / "shop 2"
    place.mkdir()
    with mam.open(str(place)) as other:
        with pytest.raises(NameTaken) as refused:
            other.sessions.create("practice", name="api", args=QUICK)
        assert refused.value.message.endswith(f"which is a session of another root: {fleet.root}")
        free = "choose another name, such as --session api-2"
        assert refused.value.hint == f"{free}; or go to that session: cd {fleet.root}"
        with pytest.raises(NotAllowed) as not_adopted:
            other.sessions.adopt("api", agent="practice")
        assert not_adopted.value.hint == f"go to that session: cd {fleet.root}"
        other.sessions.create("practice", name="api-2", args=QUICK).stop()
        fleet.sessions.rename("api", "api-2")
        with pytest.raises(NameTaken, match="session of another root") as resumed:
            other.sessions.resume("api-2")
        way = "give this session another name, and repeat: mam rename api-2 api-2-2"
        assert str(resumed.value.hint).startswith(way)


def test_the_dead_pane_of_a_session_that_was_taken_out_of_the_file_keeps_no_name(
    fleet, workspace, tmux_server, until
) -> None:
    pid = fleet.sessions.create("practice", name="one", args=QUICK).row["pane"]["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: fleet.monitor.once() and fleet.sessions.get("one").row["status"] == "terminated")
    path = workspace / ".hermes" / "agent-sessions.yaml"
    head, _, _ = path.read_text(encoding="utf-8").partition("- id:")
    path.write_text(
        head.replace("tmux_sessions:", "tmux_sessions: []") + "# end of sessions\n", encoding="utf-8"
    )
    fleet.sessions.create("practice", name="two", args=QUICK)
    assert [session.name for session in fleet.sessions.list()] == ["two"]
    assert fleet.sessions.create("practice", name="one", args=QUICK).row["status"] == "running"


def test_create_needs_an_agent(fleet) -> None:
    with pytest.raises(Usage):
        fleet.sessions.create()
    with pytest.raises(Usage, match="agent"):
        fleet.sessions.create(name="unheard-of")


def test_settings_name_the_server(fleet, tmux_server, workspace, monkeypatch) -> None:
    monkeypatch.delenv("TMUX_SERVER_NAME")
    (workspace / "mam.toml").write_text(f'tmux_server = "{tmux_server}"\n', encoding="utf-8")
    with mam.open(str(workspace)) as again:
        assert again.sessions.create("practice", args=QUICK).row["tmux_server"] == tmux_server


@pytest.mark.parametrize("folder", ["x#(touch pwned)", "a;", "new\nline", "sp ace", "quote'\""])
def test_directories_with_any_name(home, tmux_server, tmp_path, folder) -> None:
    place = tmp_path / folder
    place.mkdir()
    with mam.open(str(place)) as fleet:
        session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
        (pane,) = panes(tmux_server)
        assert pane.path == str(place)
        assert directory_of(pane.root) == str(place)
        session.stop()
        assert fleet.sessions.resume(session.name).session.status()["tmux_alive"] is True
    assert not list(tmp_path.rglob("pwned"))


def test_a_known_agent_that_is_not_installed_is_to_be_installed(fleet, tmp_path) -> None:
    with pytest.raises(mam.MamError) as caught:
        fleet.sessions.create("claude", env={"PATH": str(tmp_path)})
    assert caught.value.hint == "install it, or put its folder on PATH"


def test_a_start_that_fails_leaves_no_program_that_was_asked_for_its_version(fleet, monkeypatch) -> None:
    from mam.app.observation import versions
    from mam.app.sessions import launch

    cancelled: list[object] = []

    def note(reading: object) -> None:
        cancelled.append(reading)

    monkeypatch.setattr(versions.VersionReading, "cancel", note)

    def refuse(*_given: object, **_more: object) -> None:
        raise NameTaken("taken")

    monkeypatch.setattr(launch, "start_program", refuse)
    with pytest.raises(NameTaken):
        fleet.sessions.create("practice")
    assert len(cancelled) == 1
