"""A command in a pseudo-terminal, as a person sees it and types to it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

from tests.waiting import wait_until

DEADLINE = 20.0
SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[()][A-B0]|\x1b[=>]")


class Terminal:
    """One command and its pseudo-terminal."""

    def __init__(
        self, arguments, folder: Path, *, columns: int = 120, rows: int = 40, **environ: str
    ) -> None:
        self.raw = b""
        self.code: int | None = None
        env = {**os.environ, "TERM": "xterm-256color", **environ}
        env.pop("COLUMNS", None)
        pid, self.end = pty.fork()
        if not pid:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.chdir(folder)
                os.execve(sys.executable, [sys.executable, "-m", "mam", *arguments], env)
            finally:
                os._exit(127)
        self.pid = pid

    def read(self) -> str:
        """Return everything shown so far, sequences included."""
        while self.end >= 0 and select.select([self.end], [], [], 0)[0]:
            try:
                data = os.read(self.end, 65536)
            except OSError:
                data = b""
            if not data:
                break
            self.raw += data
        return self.raw.decode("utf-8", "replace")

    def text(self) -> str:
        """Return everything shown so far, without the sequences."""
        return SEQUENCE.sub("", self.read())

    def sees(self, expected: str, times: int = 1) -> str:
        """Wait until a text was shown."""
        return self.until(lambda: self.text().count(expected) >= times and self.text(), repr(expected))

    def type(self, text: str) -> None:
        """Type keys."""
        os.write(self.end, text.encode())

    def leave(self) -> int:
        """Wait for the end of the command and return its exit code."""
        self.until(self._has_ended, "the end")
        self.read()
        return self.code or 0

    def detach(self) -> int:
        """Leave tmux, and return the exit code of the command that showed it.

        tmux treats keys that arrive within a millisecond of other keys as pasted text, and ignores the key
        binding. Then the keys have to be typed again.
        """
        due = 0.0

        def has_left():
            nonlocal due
            if not self._has_ended() and time.monotonic() >= due:
                self.type("\x02d")
                due = time.monotonic() + 1.0
            return self.code is not None

        self.until(has_left, "the end")
        return self.leave()

    def _has_ended(self) -> bool:
        self.read()
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def close(self) -> None:
        """Kill the command if it still runs, and close the terminal."""
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.end)

    def until(self, condition, description: str, seconds: float = DEADLINE):
        """Wait for a condition under a deadline, and return its value."""
        return wait_until(condition, lambda: f"{description}\n{self.text()}", seconds)
