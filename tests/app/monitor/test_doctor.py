"""What doctor says of roots that are lost, of damaged databases, and of a disk that is nearly full."""

import os
import shutil
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

import mam


@pytest.fixture
def make_root(home, tmux_server, tmp_path):
    """Return a function that makes a root with a copy, or without one, and deletes its state."""

    def make(name: str, *, with_copy: bool) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        with mam.open(str(folder)) as fleet:
            fleet.init()
            fleet.boards.create("something to lose")
            if with_copy:
                fleet.monitor.backup()
        for state in (".mam", ".hermes"):
            shutil.rmtree(folder / state)
        return folder

    return make


def checks(fleet, name):
    return [entry for entry in fleet.monitor.doctor() if entry["check"] == name]


def test_d3_lost_roots_are_named_where_a_copy_brings_them_back(fleet, make_root) -> None:
    kept, bare, gone = (make_root(name, with_copy=name != "bare") for name in ("kept", "bare", "gone"))
    gone.rmdir()
    fleet.init()
    assert bare.is_dir()
    (line,) = checks(fleet, "known roots")
    assert line["message"].startswith("the states of 2 other roots are gone")
    assert [(entry["root"], entry["mend"]) for entry in line["roots"]] == [
        (str(gone), f"mkdir -p {gone}; mam restore --workspace {gone} brings it back"),
        (str(kept), f"mam restore --workspace {kept} brings it back"),
    ]
    with mam.open(str(kept)) as lost:
        (problem,) = checks(lost, "root")
        assert "mam restore" in problem["mend"]
        (line,) = checks(lost, "known roots")
        assert [entry["root"] for entry in line["roots"]] == [str(gone)]


@pytest.mark.parametrize("at", [0, 40], ids=["not a database", "a wrong schema"])
def test_e5_a_damaged_database_is_one_row_of_the_table(fleet, workspace, at) -> None:
    fleet.init()
    fleet.close()
    path = workspace / ".mam" / "state.db"
    content = bytearray(path.read_bytes())
    content[at : at + 64] = b"x" * 64
    path.write_bytes(content)
    with mam.open(str(workspace)) as damaged:
        findings = damaged.monitor.doctor()
    bad = [entry for entry in findings if entry["ok"] is False]
    assert [entry["check"] for entry in bad] == ["database"]
    assert bad[0]["mend"].startswith("mam restore")
    (left_out,) = [entry["message"] for entry in findings if entry["check"] == "not checked"]
    assert "sessions" in left_out
    assert {"owner", "mode", "space"} <= {entry["check"] for entry in findings if entry["ok"]}


def test_a_damaged_user_state_is_one_row_of_the_table(fleet, workspace) -> None:
    fleet.init()
    path = Path(fleet._access.context.user_state.path)
    fleet.close()
    path.write_bytes(b"x" * 4096)
    with mam.open(str(workspace)) as damaged:
        bad = [entry["check"] for entry in damaged.monitor.doctor() if entry["ok"] is False]
    assert bad == ["user state"]


@pytest.mark.parametrize(("free", "ok", "said"), [(15 << 20, False, "15.0 MiB"), (3 << 30, True, "3.0 GiB")])
def test_e2_little_free_space_is_a_problem(fleet, monkeypatch, free, ok, said) -> None:
    fleet.init()
    monkeypatch.setattr(
        os, "statvfs", lambda _path: SimpleNamespace(f_flag=0, f_bavail=free >> 12, f_frsize=4096)
    )
    found = checks(fleet, "space")
    assert {entry["ok"] for entry in found} == {ok}
    assert all(entry["message"].startswith(f"{said} are free on") for entry in found)


def test_one_is_singular(fleet) -> None:
    fleet.init()
    fleet.jobs.submit("look at it", type="human")
    sizes = " ".join(entry["message"] for entry in checks(fleet, "size"))
    assert "1 job with" in sizes
    assert " 1 jobs" not in sizes


def test_a_tmux_server_that_is_stopped_is_named_with_its_process(fleet, tmux_server) -> None:
    session = fleet.sessions.create("sleep", name="one", args=["1000"])
    server = session.row["pane"]["server_pid"]
    fleet._access.context.tmux(tmux_server).timeout = 0.5
    os.kill(server, signal.SIGSTOP)
    try:
        (found,) = checks(fleet, f"server {tmux_server}")
    finally:
        os.kill(server, signal.SIGCONT)
    assert found["message"].endswith(f"; its process {server} is stopped")
    assert found["mend"] == f"kill -CONT {server}"


def test_a_process_that_is_no_tmux_server_any_more_is_not_named(fleet, tmux_server) -> None:
    """The kernel has given its pid to a younger process, or the row is somebody else's."""
    session = fleet.sessions.create("sleep", name="one", args=["1000"])
    server, context = session.row["pane"]["server_pid"], fleet._access.context
    row = {**session.row, "pane": {**session.row["pane"], "server_pid": os.getpid()}}
    context.registry.change(lambda transaction: transaction.put(row))
    context.tmux(tmux_server).timeout = 0.5
    os.kill(server, signal.SIGSTOP)
    try:
        (found,) = checks(fleet, f"server {tmux_server}")
    finally:
        os.kill(server, signal.SIGCONT)
    assert "its process" not in found["message"]
    assert found["mend"].startswith("ps -xo pid,stat,args | grep tmux")


def test_sessions_whose_death_is_recorded_are_named(fleet, hands_on, until) -> None:
    for name in ("one", "two"):
        fleet.sessions.create("practice", name=name, args=["--speed", "0"], prompt="hello").wait("idle")
    fleet.sessions.stop("two")
    os.kill(fleet.sessions.get("one").row["pane"]["pid"], signal.SIGKILL)
    until(lambda: fleet.monitor.once() and fleet.sessions.get("one").row["status"] == "terminated")
    (found,) = checks(fleet, "ended")
    assert found["message"] == "1 session has died or ended without mam: one"
    assert (found["ok"], found["mend"]) == (None, "mam resume --all starts what can be resumed")
    assert fleet.sessions.resumable() == ["one"]
    fleet.sessions.resume("one")
    assert checks(fleet, "ended") == []


def test_a_wrong_setting_is_filed_under_settings_with_a_way_out(fleet, workspace) -> None:
    session = fleet.sessions.create("sleep", name="one", args=["1000"])
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    (workspace / "mam.toml").write_text('keep_log = "1h"\n', encoding="utf-8")
    with mam.open(str(workspace)) as again:
        bad = {entry["check"]: entry for entry in again.monitor.doctor() if entry["ok"] is False}
    assert set(bad) == {"settings", "session one"}, "the other checks are made all the same"
    assert "'keep_log' cannot be '1h'" in bad["settings"]["message"]
    assert bad["settings"]["mend"].startswith("correct or remove that line")
