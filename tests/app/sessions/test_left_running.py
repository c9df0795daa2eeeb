"""What a session has detached survives its stop, which says so, and nothing of it is ended."""

import json
import os
import signal
import subprocess
import sys

import pytest
from tests.processes import is_running

import mam
from mam.app.context import own_command
from mam.app.sessions import left_running

QUICK = ["--speed", "0"]


@pytest.fixture
def detaching(fleet, workspace, until):
    """A session that has detached a process; the session and the pid."""
    script, file = workspace / "detach.sh", workspace / "pid"
    script.write_text(
        f"setsid -f sh -c 'echo $$ >{file}.part; mv {file}.part {file}; exec sleep 1004'; exec sleep 1005\n",
        encoding="utf-8",
    )
    session = fleet.sessions.create("sh", name="parent", args=[str(script)], wait=False)
    until(file.exists)
    pid = int(file.read_text(encoding="utf-8"))
    yield session, pid
    if is_running(pid):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def warnings(fleet):
    told = []
    fleet.on_warning(told.append)
    return told


def test_d8_a_stop_names_what_the_session_detached_and_ends_nothing_of_it(fleet, detaching, warnings):
    session, pid = detaching
    outcome = fleet.sessions.stop(session.name)
    assert outcome.session.row["status"] == "stopped"
    assert outcome.left_running == [{"pid": pid, "command": "sleep 1004"}]
    assert is_running(pid)
    (warning,) = warnings
    assert f"'parent' started processes that still run: {pid} (sleep 1004)" in warning
    assert warning.endswith(f"end them with: kill {pid}")
    assert fleet.sessions.log("parent")[-1]["detail"]["left_running"] == outcome.left_running


def test_d8_the_command_line_says_it_in_text_and_in_json(fleet, detaching, workspace) -> None:
    session, pid = detaching
    bystander = fleet.sessions.create("sleep", name="bystander", args=["1006"])
    done = [
        subprocess.run(
            [sys.executable, "-P", "-m", "mam", "stop", name, *words],
            cwd=workspace,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
            check=True,
        )
        for name, words in ((session.name, ["--json"]), (bystander.name, ["--json"]))
    ]
    first, second = (json.loads(run.stdout) for run in done)
    assert first["left_running"] == [{"pid": pid, "command": "sleep 1004"}]
    assert (second["left_running"], "warnings" in second) == ([], False)
    assert f"kill {pid}" in done[0].stderr


def test_d8_doctor_names_what_is_left_until_it_ends(fleet, detaching, until) -> None:
    session, pid = detaching
    assert not [entry for entry in fleet.monitor.doctor() if entry["check"] == "left running"]
    fleet.sessions.stop(session.name)
    (found,) = [entry for entry in fleet.monitor.doctor() if entry["check"] == "left running"]
    assert (found["ok"], f"{pid} (sleep 1004)" in found["message"]) == (None, True)
    assert f"kill {pid}" in found["mend"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: not [entry for entry in fleet.monitor.doctor() if entry["check"] == "left running"])


def test_children_of_the_session_that_end_with_it_and_sessions_that_it_started_are_not_named(
    fleet, workspace, until, warnings
) -> None:
    script = workspace / "family.sh"
    mam = f"{sys.executable} -P -m mam"
    script.write_text(
        f"sleep 1007 & {mam} create --agent sleep --session child --json -- 1008 >out.part 2>&1\n"
        "mv out.part out; exec sleep 1009\n",
        encoding="utf-8",
    )
    fleet.sessions.create("sh", name="parent", args=[str(script)], wait=False)
    until((workspace / "out").exists, 60)
    assert fleet.sessions.get("child").row["status"] == "running"
    assert fleet.sessions.stop("parent").left_running == []
    assert warnings == []
    assert fleet.sessions.get("child").row["status"] == "running"


def test_a_session_that_had_ended_leaves_nothing_to_tell(fleet) -> None:
    fleet.sessions.create("sleep", name="one", args=["1000"])
    assert fleet.sessions.stop("one").left_running == []
    assert fleet.sessions.stop("one").left_running is None


@pytest.mark.parametrize(
    ("command", "is_own"),
    [
        (own_command.argv("monitor", "--resident"), True),
        ([sys.executable, "-m", "mam", "ls"], True),
        (["/usr/bin/python3", "/usr/local/bin/mam", "mcp"], True),
        (["mam", "wait"], True),
        (["/usr/bin/python3", "-m", "http.server"], False),
        (["sh", "-c", "sleep 1; mam ls"], False),
        (["vim", "notes/mam.txt"], False),
        ([], False),
    ],
)
def test_what_counts_as_mam_itself(command, is_own) -> None:
    assert own_command.is_own(command) is is_own


def test_e5_live_agents_whose_record_is_lost_are_never_named_to_be_ended(fleet, workspace) -> None:
    fleet.sessions.create("practice", name="kept", args=QUICK)
    fleet.sessions.create("practice", name="lost", args=QUICK)
    copy = fleet.monitor.backup()["path"]
    context = fleet._access.context
    secrets = context.user_state.secret_files(context.root_id)
    row = fleet.sessions.get("lost").row
    context.registry.change(lambda transaction: transaction.remove(row["id"]))

    fleet.sessions.create("sleep", name="other", args=["1000"])
    assert secrets.items() <= context.user_state.secret_files(context.root_id).items()

    # An older mam ended them, and no file of theirs is left.
    context.user_state.end_secrets(list(secrets.values()))
    checks = {entry["check"]: entry for entry in fleet.monitor.doctor()}
    assert "left running" not in checks
    mend = checks["pane without a row"]["mend"]
    assert "kill" not in mend
    assert f"mam restore FILE goes back to a copy, such as {copy}" in mend
    assert "mam adopt lost --agent KIND" in mend

    answer = subprocess.run(
        [sys.executable, "-P", "-m", "mam", "stop", "lost"],
        cwd=workspace,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert answer.returncode == 1
    assert "mam doctor says how to take it back" in answer.stderr
    assert "--force-no-yaml" not in answer.stderr
    with mam.open(str(workspace)) as reopened:
        reopened.sessions.adopt("lost", agent="practice", pane=row["pane"]["id"])
        assert not [entry for entry in reopened.monitor.doctor() if entry["check"] == "pane without a row"]


def test_many_processes_are_named_in_part_and_all_can_be_ended() -> None:
    processes = [{"pid": pid, "command": "x"} for pid in range(1, 9)]
    text = left_running.warning("one", processes)
    assert "5 (x) and 3 more; end them with: kill 1 2 3 4 5 6 7 8" in text
