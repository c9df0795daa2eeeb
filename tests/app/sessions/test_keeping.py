"""Rename, archive, forget, adopt, attach, init, and how mam recognises a calling session."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import mam
from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux
from mam.core.errors import (
    AmbiguousTarget,
    IllegalTransition,
    InvalidName,
    NameTaken,
    NotAllowed,
    PaneGone,
    Refused,
    SessionNotFound,
    Usage,
)

QUICK = ["--speed", "0"]


def bare_tmux(server: str, *arguments: str) -> str:
    result = subprocess.run(
        ["tmux", "-L", server, *arguments], capture_output=True, text=True, check=True, timeout=10
    )
    return result.stdout.strip()


def test_rename_renames_both(fleet, tmux_server) -> None:
    session = fleet.sessions.create("practice", name="before", args=QUICK)
    renamed = fleet.sessions.rename("before", "after")
    assert (renamed.id, renamed.name) == (session.id, "after")
    assert [pane.session_name for pane in Tmux(tmux_server).panes().panes] == ["after"]
    with pytest.raises(SessionNotFound):
        fleet.sessions.get("before")
    assert fleet.sessions.rename("after", "after").name == "after"


def test_rename_onto_something_else_is_refused(fleet, tmux_server) -> None:
    fleet.sessions.create("sleep", name="one", args=["1000"])
    fleet.sessions.create("sleep", name="two", args=["1000"])
    bare_tmux(tmux_server, "new-session", "-d", "-s", "three", "sleep 1000")
    for taken in ("two", "three"):
        with pytest.raises(NameTaken):
            fleet.sessions.rename("one", taken)
    with pytest.raises(InvalidName):
        fleet.sessions.rename("one", "#(x)")
    assert [session.name for session in fleet.sessions.list()] == ["one", "two"]


def test_archive_and_forget_only_what_has_ended(fleet) -> None:
    session = fleet.sessions.create("practice", name="worker", args=QUICK)
    for verb in (fleet.sessions.archive, fleet.sessions.forget):
        with pytest.raises(IllegalTransition, match="running"):
            verb("worker")
    session.stop()
    assert fleet.sessions.archive("worker").row["status"] == "archived"
    assert fleet.sessions.archive("worker").row["status"] == "archived"
    assert fleet.sessions.forget("worker")["forgotten"] == "worker"
    assert fleet.sessions.list() == []
    assert "tmux_sessions: []" in Path(fleet.registry_file).read_text(encoding="utf-8")


def test_forgettable_by_age(fleet) -> None:
    fleet.sessions.create("sleep", name="old", args=["1000"]).stop()
    fleet.sessions.create("sleep", name="new", args=["1000"]).stop()
    fleet.sessions.create("sleep", name="alive", args=["1000"])

    def age(transaction):
        row = transaction.named("old")
        transaction.put({**row, "stopped_at_epoch": row["stopped_at_epoch"] - 1000})

    fleet._access.context.registry.change(age)
    assert fleet.sessions.forgettable(older_than=500) == ["old"]
    assert fleet.sessions.forgettable() == ["old", "new"]


def test_a_dead_pane_goes_with_its_row(fleet, tmux_server, until) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    os.kill(session.row["pane"]["pid"], signal.SIGKILL)
    until(lambda: process.identify(session.row["pane"]["pid"]) is None)
    session.stop()
    fleet.sessions.forget(session.id)
    assert Tmux(tmux_server).panes().panes == []


def test_adopt_takes_what_runs_already(fleet, tmux_server, workspace, until) -> None:
    bare_tmux(tmux_server, "new-session", "-d", "-s", "by-hand", "-c", str(workspace), "sleep", "1000")
    (pane,) = Tmux(tmux_server).panes().panes
    until(lambda: process.command_line(pane.pid) == ["sleep", "1000"])
    session = fleet.sessions.adopt("by-hand", agent="sleep", role="helper")
    (pane,) = Tmux(tmux_server).panes().panes
    assert (pane.mark, session.row["pane"]["pid"], session.row["workspace"]) == (
        session.id,
        pane.pid,
        str(workspace),
    )
    assert session.row["start_command"] == ["sleep", "1000"]
    with pytest.raises(NotAllowed):
        fleet.sessions.adopt("by-hand", agent="sleep", name="again")
    assert session.stop().row["status"] == "stopped"


def test_adopt_refuses_to_guess(fleet, tmux_server) -> None:
    bare_tmux(tmux_server, "new-session", "-d", "-s", "two", "sleep 1000", ";", "split-window", "sleep 1001")
    with pytest.raises(AmbiguousTarget, match="%0, %1"):
        fleet.sessions.adopt("two", agent="sleep")
    assert fleet.sessions.adopt("two", agent="sleep", pane="%1").row["pane"]["id"] == "%1"
    with pytest.raises(PaneGone):
        fleet.sessions.adopt("tw", agent="sleep")
    # Only the pane of the session ends; the tmux session stays with the other pane.
    fleet.sessions.stop("two")
    assert [pane.id for pane in Tmux(tmux_server).panes().panes] == ["%0"]


def test_attach_says_what_to_execute(fleet, tmux_server) -> None:
    session = fleet.sessions.create("sleep", args=["1000"])
    document = fleet.sessions.attach(session.name)
    assert document["switched"] is False
    assert document["argv"][-1] == session.row["tmux_session_id"]
    assert fleet.sessions.attach()["session"] == session.name
    fleet.sessions.create("sleep", args=["1000"])
    with pytest.raises(Usage):
        fleet.sessions.attach()
    session.stop()
    with pytest.raises(PaneGone):
        fleet.sessions.attach(session.name)


def test_attach_next_cycles_through_the_waiting_sessions(fleet, until_reported) -> None:
    for name in ("a", "b", "c"):
        session = fleet.sessions.create("practice", name=name, args=QUICK)
        if name != "b":
            Tmux(session.row["tmux_server"]).paste(
                session.row["pane"]["id"], "/ask touch x", mark=session.id, enter=True
            )
            until_reported(session, "PermissionRequest")
    assert fleet.sessions.attach(next_waiting=True)["session"] == "a"
    assert fleet.sessions.attach("a", next_waiting=True)["session"] == "c"
    assert fleet.sessions.attach("c", next_waiting=True)["session"] == "a"
    for name in ("a", "c"):
        fleet.sessions.stop(name, force=True)
    with pytest.raises(Refused):
        fleet.sessions.attach(next_waiting=True)


def test_attach_switches_the_client_of_the_current_terminal(fleet, tmux_server, workspace, until) -> None:
    target = fleet.sessions.create("sleep", name="target", args=["1000"])
    current = fleet.sessions.create("sleep", name="here", args=["1000"])
    master, slave = os.openpty()
    client = subprocess.Popen(
        ["tmux", "-L", tmux_server, "attach", "-t", "=here"],
        stdin=slave, stdout=slave, stderr=slave, start_new_session=True, env={**os.environ, "TERM": "xterm"},
    )  # fmt: skip
    try:
        until(lambda: bare_tmux(tmux_server, "list-clients", "-F", "#{session_name}") == "here")
        socket = bare_tmux(tmux_server, "display-message", "-p", "#{socket_path}")
        environ = {
            **os.environ,
            "TMUX": f"{socket},{current.row['pane']['server_pid']},0",
            "TMUX_PANE": current.row["pane"]["id"],
        }
        with mam.open(str(workspace), environ=environ) as inner:
            assert inner.sessions.attach("target")["switched"] is True
        until(lambda: bare_tmux(tmux_server, "list-clients", "-F", "#{session_name}") == target.name)
    finally:
        client.kill()
        client.wait()
        os.close(master)
        os.close(slave)


def test_init_makes_a_root_on_purpose(fleet, home, workspace) -> None:
    inner = workspace / "deep" / "inner"
    inner.mkdir(parents=True)
    fleet.sessions.create("sleep", args=["1000"])
    with mam.open(str(inner)) as outer:
        assert outer.root == str(workspace)
        outer.init()
    with mam.open(str(inner)) as own:
        assert own.root == str(inner)
    assert (inner / ".mam/.gitignore").read_text(encoding="utf-8").endswith("*\n")
    for path, mode in ((".mam", 0o700), (".mam/state.db", 0o600), (".hermes/agent-sessions.yaml", 0o600)):
        assert (inner / path).stat().st_mode & 0o777 == mode


def test_a_registry_that_is_named_keeps_its_state_beside_itself(home, tmux_server, tmp_path) -> None:
    file = tmp_path / "other.yaml"
    with mam.open(str(tmp_path), registry=str(file)) as fleet:
        session = fleet.sessions.create("practice", args=QUICK, prompt="hello")
        assert session.wait("idle", timeout=10)["activity"] == "idle"
    assert (tmp_path / "other.yaml.mam/state.db").exists()
    assert not (tmp_path / ".mam").exists()


CALL = (
    "import mam, sys; print(mam.open().sessions.create('sleep', args=['1000'], name='child').row['parent'])"
)


def test_a_calling_agent_is_recognised_by_its_process(fleet, workspace, until) -> None:
    out = workspace / "out"
    script = workspace / "call.sh"
    script.write_text(f'"{sys.executable}" -c "{CALL}" > {out} 2>&1; exec sleep 1000\n', encoding="utf-8")
    parent = fleet.sessions.create("sh", args=[str(script)])
    assert until(lambda: out.exists() and out.read_text(encoding="utf-8").strip()) == parent.id


def test_a_variable_alone_makes_no_caller_a_session(fleet, workspace) -> None:
    parent = fleet.sessions.create("sleep", args=["1000"])
    forged = {**os.environ, "MAM_SESSION": parent.id, "MAM_ROOT": str(workspace)}
    with mam.open(environ=forged) as other:
        assert other.root == str(workspace)
        assert other.sessions.status(parent.name)["status"] == "running"
        with pytest.raises(NotAllowed, match="MAM_SESSION names a session") as caught:
            other.sessions.create("sleep", args=["1000"])
    assert (caught.value.exit_code, fleet.sessions.names()) == (1, [parent.name])
    assert "unset MAM_SESSION MAM_ROOT" in caught.value.hint


def test_s000_4_the_variable_names_another_registry_file(tmp_path, home) -> None:
    file = tmp_path / "other.yaml"
    with mam.open(str(tmp_path), environ={**os.environ, "AGENT_SESSIONS_YAML": str(file)}) as fleet:
        assert fleet.registry_file == str(file)
    with mam.open(str(tmp_path)) as fleet:
        assert fleet.registry_file == str(tmp_path / ".hermes/agent-sessions.yaml")
