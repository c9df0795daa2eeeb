"""Which processes a stop ends: what outlives the agent, what they start meanwhile, and nobody else's."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

import mam.app.sessions.session_processes as session_processes
from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux
from mam.core.errors import NotAllowed

# Each agent says that it is ready, and ends at Ctrl-C.
_READY = """
Path("ready").touch()
try:
    while True:
        time.sleep(100)
except KeyboardInterrupt:
    sys.exit(0)
"""
_BEGIN = "import ctypes, os, signal, subprocess, sys, time\nfrom pathlib import Path\n"
# In a session of its own, without the environment of the agent: a worker that starts another one when it is
# told to end, as a process manager does.
_SUCCESSOR = """
if os.fork() == 0:
    os.setsid()
    def succeed(*_):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            while True:
                time.sleep(100)
        Path("successor").write_text(str(pid))
        os._exit(0)
    signal.signal(signal.SIGTERM, succeed)
    Path("worker").touch()
    while True:
        time.sleep(100)
"""
# In the agent's own session: each generation answers SIGTERM with the next one.
_SUPERVISOR = """
if os.fork() == 0:
    os.setpgid(0, 0)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    def succeed(*_):
        if pid := os.fork():
            Path("successor").write_text(str(pid))
            os._exit(0)
    signal.signal(signal.SIGTERM, succeed)
    Path("worker").touch()
    while True:
        time.sleep(100)
"""


@pytest.fixture
def start(fleet, workspace, until, monkeypatch):
    """Start an agent from lines of Python; it is ready when the named files are there."""

    def start(lines, *files, name="one"):
        path = workspace / f"{name}.py"
        path.write_text(_BEGIN + lines + _READY, encoding="utf-8")
        session = fleet.sessions.create("sh", args=["-c", f"exec {sys.executable} {path}"], name=name)
        until(lambda: all((workspace / file).exists() for file in (*files, "ready")))
        return session

    return start


def pid_in(path: Path) -> int | None:
    return int(path.read_text(encoding="utf-8")) if path.exists() else None


def is_alive(pid: int | None) -> bool:
    return pid is not None and process.identify(pid) is not None


@pytest.mark.promise("P17")
@pytest.mark.parametrize("lines", [_SUCCESSOR, _SUPERVISOR], ids=["a successor", "generations"])
def test_what_is_started_in_answer_to_the_end_is_killed(start, workspace, lines) -> None:
    session = start(lines, "worker")
    row = session.stop().row
    assert (row["status"], row["termination_mode"]) == ("stopped", "forced")
    assert (workspace / "successor").exists(), "nobody was told to end"
    assert not is_alive(pid_in(workspace / "successor"))


@pytest.mark.promise("P17")
@pytest.mark.parametrize("force", [False, True])
def test_a_process_of_another_user_keeps_no_other_one_alive(
    fleet, start, workspace, monkeypatch, force
) -> None:
    """The signal is a fake that refuses for one process: it stands for a child that became root by sudo."""
    start(
        """
for name in ("other", "first", "second", "third"):
    pid = os.fork()
    if pid == 0:
        os.setsid()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True:
            time.sleep(100)
    Path(name).write_text(str(pid))
"""
    )
    pids = {name: pid_in(workspace / name) for name in ("other", "first", "second", "third")}
    real, warnings = process.signal, []
    fleet.on_warning(warnings.append)

    def refuse(identity, number):
        if identity.pid == pids["other"]:
            raise NotAllowed(f"process {identity.pid} belongs to another user")
        return real(identity, number)

    monkeypatch.setattr(process, "signal", refuse)
    try:
        outcome = fleet.sessions.stop("one", force=force)
        assert outcome.session.row["status"] == "stopped"
        assert [name for name, pid in pids.items() if is_alive(pid)] == ["other"]
        assert any(f"sudo kill {pids['other']}" in warning for warning in warnings), warnings
        assert [entry["pid"] for entry in outcome.left_running] == [pids["other"]]
    finally:
        os.kill(pids["other"], signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has child subreapers")
@pytest.mark.promise("P17")
def test_a_tmux_server_that_the_agent_has_started_for_others_lives_on(start, tmux_server, workspace) -> None:
    """An agent that adopts orphans, as a small init of a container does, is the parent of such a server."""
    other = f"{tmux_server}-other"
    try:
        session = start(
            f"""
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.run(["tmux", "-L", {other!r}, "new-session", "-d", "-s", "victim", "sleep 1000"], check=True)
"""
        )
        server = Tmux(other).server_pid()
        assert process.parent_of(server) == session.row["pane"]["pid"]
        assert session.stop().row["status"] == "stopped"
        assert [pane.session_name for pane in Tmux(other).panes().panes] == ["victim"]
    finally:
        Tmux(other).kill_server()


def test_the_agent_itself_is_never_spared(fleet, workspace, until) -> None:
    """The practice agent runs as `python -m mam.practice`, and a client of tmux is no server."""
    session = fleet.sessions.create("practice", name="one", args=["--speed", "0"])
    processes = session_processes.SessionProcesses(fleet._access.context, session.row)
    processes.add_agent(process.identify(session.row["pane"]["pid"]), None)
    assert session.row["pane"]["pid"] in {identity.pid for identity in processes.alive()}
