"""A private tmux server for each test, with its own sockets and HOME, which must have ended afterwards."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from tests.processes import is_running
from tests.waiting import wait_until

from mam.adapters.tmux.client import Tmux, clean_environment

_count = itertools.count()
MARK = "s_00000001"
# Records every byte that a pane receives, as a program that asks for bracketed paste.
RECORDER = """
import os, sys, tty
tty.setraw(0)
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.write(1, b"\\x1b[?2004hREADY\\r\\n")
while data := os.read(0, 65536):
    os.write(log, data)
"""


class PrivateServer:
    """The tmux server of one test, with shortcuts for tests."""

    def __init__(self, name: str, directory: Path) -> None:
        self.tmux = Tmux(name)
        self.name = name
        self.directory = directory

    def start(self, *command: str, name: str = "one", mark: str = MARK, cwd: object = None, root: str = "/"):
        argv = list(command) or ["cat", "-"]
        place = str(cwd or self.directory)
        return self.tmux.start(name, argv, cwd=place, session_id=mark, root=root)

    def record(self, name: str = "recorder", mark: str = MARK):
        """Start a pane whose input is recorded; return it and the file."""
        log = self.directory / f"{name}.bytes"
        pane = self.start(sys.executable, "-S", "-c", RECORDER, str(log), name=name, mark=mark)
        self.until(lambda: "READY" in self.tmux.look(pane.id).screen)
        return pane, log

    def raw(self, *arguments: str | bytes, check: bool = True) -> str:
        """Run the tmux program directly, without mam."""
        result = subprocess.run(
            ["tmux", "-L", self.name, *arguments],
            env=clean_environment(os.environ),
            capture_output=True,
            timeout=20,
            check=check,
        )
        return result.stdout.decode("utf-8", "replace")

    @staticmethod
    def until(condition, timeout: float = 15.0):
        """Wait for a true value and return it; fail after the timeout."""
        return wait_until(condition, seconds=timeout)

    @staticmethod
    def is_running(pid: int) -> bool:
        return is_running(pid)


@pytest.fixture
def private(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    work = tmp_path / "work"
    work.mkdir()
    # Not below tmp_path: a socket's path has at most 107 bytes.
    sockets = tempfile.mkdtemp(prefix="mam-t-")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TMUX_TMPDIR", sockets)
    monkeypatch.setenv("TMUX", "/nowhere/default,1,0")
    monkeypatch.setenv("MAM_SESSION", "s_ffffffff")
    server = PrivateServer(f"mam-test-{os.getpid()}-{next(_count)}", work)
    yield server
    pid = server.tmux.server_pid()
    if pid is not None:
        os.kill(pid, signal.SIGCONT)
        # After a control client was killed, tmux 3.3a does not end by itself, so kill_server kills it.
        server.tmux.kill_server(timeout=2)
        assert not is_running(pid)
    assert server.tmux.server_pid() is None
    shutil.rmtree(sockets)


@pytest.fixture
def tmux(private):
    return private.tmux
