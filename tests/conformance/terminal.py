"""A private tmux server and the panes in it, held without any of mam's own code.

A pane keeps its screen after the program ended, and knows the exit status.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.processes import is_running
from tests.waiting import wait_until

WIDTH, HEIGHT = 200, 50
DEADLINE = 30.0
# The shell stays the pane's process and the program is its child, as with a person's shell.
_WRAPPER = '"$@"; echo $? >"$MAM_CONF_STATUS"; exec cat'


class Terminals:
    """A tmux server of our own; use it as a context manager. At its end the server is proven gone."""

    def __init__(self, name: str, place: Path) -> None:
        self.name = name
        self.place = place
        self._started = 0
        self._socket: Path | None = None

    def __enter__(self) -> Terminals:
        return self

    def __exit__(self, *_: object) -> None:
        found = self._run("display-message", "-p", "#{pid}", check=False)
        if found.returncode == 0 and found.stdout.strip():
            pid = int(found.stdout)
            self._run("kill-server", check=False)
            wait_until(lambda: not is_running(pid), "the end of the tmux server")
        if self._socket is not None:
            # tmux 3.3a leaves the file behind.
            self._socket.unlink(missing_ok=True)

    def open(
        self,
        argv: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        size: tuple[int, int] = (WIDTH, HEIGHT),
    ) -> Pane:
        """Start a program in a pane of its own, with this environment and tmux's variables, no others."""
        self._started += 1
        status = self.place / f"status-{self._started}"
        # From `env -i` on, nothing of the caller is left but what tmux itself sets for the pane.
        keep = [f"{name}=${{{name}}}" for name in ("TMUX", "TMUX_PANE", "TERM")]
        shell = f'exec env -i {" ".join(keep)} "$@"'
        pairs = [f"{name}={value}" for name, value in environment.items()]
        line = [
            "sh",
            "-c",
            shell,
            "sh",
            *pairs,
            f"MAM_CONF_STATUS={status}",
            "sh",
            "-c",
            _WRAPPER,
            "sh",
            *argv,
        ]
        width, height = size
        made = self._run(
            *(
                "new-session",
                "-d",
                "-P",
                "-F",
                "#{pane_id} #{socket_path}",
                "-x",
                str(width),
                "-y",
                str(height),
            ),
            *("-c", str(folder), "--", *line),
        )
        ident, socket = made.stdout.rstrip("\n").split(" ", 1)
        self._socket = Path(socket)
        return Pane(self, ident, status)

    def _run(
        self, *argv: str, check: bool = True, text: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["tmux", "-u", "-L", self.name, "-f", "/dev/null", *argv],
            input=text,
            capture_output=True,
            encoding="utf-8",
            timeout=20,
            check=False,
        )
        assert done.returncode == 0 or not check, f"tmux {argv[0]}: {done.stderr}"
        return done


@dataclass(frozen=True, slots=True)
class Drawn:
    """One screen: its text, the same with the sequences of its styles, and its cursor."""

    text: str
    styled: str
    cursor: list[int]


@dataclass(slots=True)
class Pane:
    """One program in one pane: what it shows, and the keys that reach it."""

    terminals: Terminals
    ident: str
    status_file: Path

    def screen(self) -> str:
        return self._run("capture-pane", "-p", "-t", self.ident).stdout

    def drawn(self) -> Drawn:
        """Return the screen with its styles and its cursor, all of the same moment."""
        end, target = "end of the text", ("-p", "-t", self.ident)
        answer = self._run(
            *("display-message", *target, "#{cursor_x} #{cursor_y}", ";", "capture-pane", *target, ";"),
            *("display-message", "-p", end, ";", "capture-pane", "-e", *target),
        ).stdout
        cursor, _, both = answer.partition("\n")
        text, _, styled = both.partition(f"{end}\n")
        return Drawn(text.rstrip("\n"), styled.rstrip("\n"), [int(place) for place in cursor.split()])

    def field(self, name: str) -> str:
        """Return one tmux format variable of the pane."""
        return self._run("display-message", "-p", "-t", self.ident, f"#{{{name}}}").stdout.rstrip("\n")

    def shows(self, pattern: str) -> bool:
        return re.search(pattern, self.screen(), re.MULTILINE) is not None

    def wait_for(self, pattern: str, timeout: float = DEADLINE) -> str:
        """Wait until the screen matches, and return it."""

        def shown() -> str | None:
            screen = self.screen()
            return screen if re.search(pattern, screen, re.MULTILINE) else None

        found = wait_until(shown, lambda: f"{pattern!r}, the screen is\n{self.screen()}", timeout)
        assert found is not None
        return found

    def settle(self, quiet: float = 0.6, timeout: float = 5.0) -> str:
        """Wait until the screen has not changed for a while, and return it.

        It returns after the timeout too: a dot that blinks never rests.
        """
        until = time.monotonic() + timeout
        shown, since = self.screen(), time.monotonic()
        while time.monotonic() - since < quiet and time.monotonic() < until:
            time.sleep(0.05)
            if (now := self.screen()) != shown:
                shown, since = now, time.monotonic()
        return shown

    def keys(self, *names: str) -> None:
        self._run("send-keys", "-t", self.ident, *names)

    def type(self, text: str) -> None:
        self._run("send-keys", "-t", self.ident, "-l", "--", text)

    def paste(self, text: str) -> None:
        """Paste in brackets, as a person's terminal does."""
        buffer = f"conf{self.ident[1:]}"
        self._run("load-buffer", "-b", buffer, "-", text=text)
        self._run("paste-buffer", "-p", "-r", "-d", "-b", buffer, "-t", self.ident)

    def submit(self, text: str, pause: float = 0.3) -> None:
        """Paste a text, give the program time to take it, and press Enter."""
        self.paste(text)
        time.sleep(pause)
        self.keys("Enter")

    def exit_status(self) -> int | None:
        try:
            return int(self.status_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None

    def wait_for_exit(self, timeout: float = DEADLINE) -> int:
        """Wait for the end of the program, and return its exit status."""
        wait_until(lambda: self.exit_status() is not None, "the end of the program", timeout)
        return self.exit_status() or 0

    def close(self) -> None:
        """End the pane and what runs in it; one that is gone already is fine."""
        self.terminals._run("kill-pane", "-t", self.ident, check=False)

    def _run(self, *argv: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return self.terminals._run(*argv, text=text)
