"""A place to measure in: a home, a root and a tmux server of its own, all of it gone afterwards."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.measure import until
from mam.adapters.system import process
from mam.adapters.tmux.client import Tmux

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    import pytest

PYTHON = sys.executable
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "USER", "LOGNAME")
_numbers = itertools.count(1)


def mam(*words: str) -> list[str]:
    """Return the command line as a person's shell runs it."""
    script = Path(PYTHON).parent / "mam"
    return [str(script), *words] if script.exists() else [PYTHON, "-m", "mam", *words]


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Have Ctrl-C wait until something is cleaned up."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Stage:
    """A context that makes the place and takes it away, also when the run is interrupted."""

    def __init__(self) -> None:
        """Name the server; nothing exists yet."""
        self.server = f"mam-bench-{os.getpid()}-{next(_numbers)}"

    def __enter__(self) -> Stage:
        """Make the folders; the tmux server starts with its first session."""
        # The socket lies in it too, and its path has at most 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="mam-bench-")).resolve()
        self.home, self.root = self.folder / "home", self.folder / "root"
        for folder in (self.home, self.root):
            folder.mkdir()
        # What is measured is measured alone.
        settings = self.home / ".config" / "mam" / "config.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text('resident = "off"\n', encoding="utf-8")
        self.environ = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
            "HOME": str(self.home),
            "MAM_STATE_HOME": str(self.home / "state"),
            "TERM": "screen-256color",
            "TMUX_TMPDIR": str(self.folder),
            "TMUX_SERVER_NAME": self.server,
        }
        self.tmux = Tmux(self.server, environ=self.environ, timeout=60)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the server, prove it, and remove the folders; a second Ctrl-C has to wait."""
        with interrupts_ignored():
            self._end()

    def _end(self) -> None:
        try:
            server = self.tmux.server_pid()
            agents = process.tree(server) if server is not None else set()
            self.tmux.kill_server(timeout=60)
            if self.tmux.server_pid() is not None:
                raise RuntimeError(f"tmux server {self.server} is still there")
            # An agent whose pane was closed may write here until it has left.
            until(lambda: not any(map(process.is_alive, agents)), "the end of the agents")
        finally:
            shutil.rmtree(self.folder)

    def move_in(self, patch: pytest.MonkeyPatch) -> None:
        """Give this process the stage's environment, for programs that are started from it."""
        for name in list(os.environ):
            if name not in self.environ:
                patch.delenv(name)
        # What the programs leave in a temporary folder goes with the stage.
        for name, value in {**self.environ, "TMPDIR": str(self.folder)}.items():
            patch.setenv(name, value)

    def tmux_argv(self, *words: str) -> list[str]:
        """Return a bare tmux command for this server."""
        return [shutil.which("tmux") or "tmux", "-u", "-L", self.server, *words]

    def ask_tmux(self, *words: str, script: str = "") -> str:
        """Run a bare tmux command, outside of any measurement; words of `script` go to its stdin."""
        done = subprocess.run(
            self.tmux_argv(*words),
            input=script,
            env=self.environ,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"tmux {words[0]}: {done.stderr.strip()}")
        return done.stdout

    def keep_server(self) -> None:
        """Start the server with one session that nobody measures."""
        self.ask_tmux("new-session", "-d", "-s", "keeper", "--", "sleep", "3600")
