"""How the tests hold a practice agent: waits with deadlines, a pseudo-terminal, a tmux pane."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

from tests.waiting import wait_until

import mam.practice
from mam.practice.text_width import cells

SOURCE = str(Path(mam.practice.__file__).parents[2])
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07")


def wait_for(condition, description: str = "the condition", show=lambda: ""):
    """Return the first true value of `condition`; fail after the deadline, showing what was there instead."""
    return wait_until(condition, lambda: f"{description}\n{show()}")


def tmux(server: str, *arguments: str, text: str | None = None) -> str:
    """Run one tmux command on a private server."""
    result = subprocess.run(
        ["tmux", "-u", "-L", server, "-f", "/dev/null", *arguments],
        input=text,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return result.stdout


class Store:
    """Where one test keeps its conversations, its working folder and its hook records."""

    def __init__(self, base: Path, bytecode: Path) -> None:
        self.data = base / "data" / "mam-practice"
        self.folder = base / "work"
        self.folder.mkdir()
        self.events = base / "events"
        self.events.mkdir()
        self.own = {
            "HOME": str(base),
            "XDG_DATA_HOME": str(base / "data"),
            "PYTHONPATH": SOURCE,
            "PYTHONPYCACHEPREFIX": str(bytecode),
            "TERM": "screen-256color",
            "LC_ALL": "C.UTF-8",
        }
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("TMUX", "PYTHON", "NO_COLOR"))}
        self.environment = inherited | self.own

    def turns(self, ident: str) -> list[dict]:
        path = self.data / f"{ident}.jsonl"
        if not path.exists():
            return []
        # Whoever reads while a long line is written sees its beginning: only ended lines count.
        return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]

    def recorder(self) -> str:
        """Return settings whose hooks keep each payload in a file, numbered in the order of their end."""
        place = self.events
        command = f"n=$(ls {place} | wc -l); cat >{place}/.new && mv {place}/.new {place}/$n"
        names = "SessionStart UserPromptSubmit PermissionRequest PostToolUse Stop StopFailure SessionEnd"
        return json.dumps({"hooks": {name: command for name in names.split()}})

    def heard(self) -> list[dict]:
        files = [path for path in self.events.iterdir() if path.name.isdigit()]
        return [json.loads(path.read_text()) for path in sorted(files, key=lambda path: int(path.name))]

    def heard_names(self) -> list[str]:
        return [payload["hook_event_name"] for payload in self.heard()]


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "mam.practice", *arguments]


class Run:
    """An agent whose terminal is held by the test."""

    def __init__(self, store: Store, arguments: tuple[str, ...], columns: int, rows: int) -> None:
        self.raw = b""
        pid, self.terminal = pty.fork()
        if not pid:
            try:
                os.chdir(store.folder)
                os.execve(sys.executable, command_line(*arguments), store.environment)
            finally:
                os._exit(127)
        self.pid = pid
        self.code: int | None = None
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self) -> bool:
        """Take what the agent has written; False when there is nothing now."""
        if self.terminal < 0 or not select.select([self.terminal], [], [], 0)[0]:
            return False
        try:
            data = os.read(self.terminal, 65536)
        except OSError:
            data = b""
        self.raw += data
        return bool(data)

    def text(self) -> str:
        """Return everything written so far, without the sequences."""
        while self.read():
            pass
        return _SEQUENCE.sub("", self.raw.decode("utf-8", "replace"))

    def send(self, data: bytes | str) -> None:
        remaining = data.encode() if isinstance(data, str) else data
        while remaining:
            self.text()
            if select.select([], [self.terminal], [], 0.05)[1]:
                remaining = remaining[os.write(self.terminal, remaining[:512]) :]

    def sees(self, text: str, *, times: int = 1) -> str:
        wait_for(lambda: self.text().count(text) >= times, repr(text), self.text)
        return self.text()

    def reads_up_to(self, text: str) -> None:
        """Read until the text is there, and no further than the same read brings.

        `text()` reads until there is nothing: a slow reader then takes all that a fast agent writes.
        """
        wait_for(lambda: self.read() and text.encode() in self.raw, repr(text), lambda: repr(self.raw))

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def exit_code(self) -> int:
        """Wait for the end and read meanwhile, so that the last output does not block the program."""

        def ended() -> bool:
            self.text()
            return self.has_ended()

        wait_for(ended, "the end of the agent", self.text)
        assert self.code is not None
        return self.code

    def has_ended(self) -> bool:
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code is not None

    def is_full(self) -> bool:
        """Say whether bytes wait for a reader and no more of them come."""
        waiting = [self._waiting_bytes(), time.sleep(0.05), self._waiting_bytes()]
        return waiting[0] == waiting[2] > 0

    def _waiting_bytes(self) -> int:
        return struct.unpack("i", fcntl.ioctl(self.terminal, termios.FIONREAD, b"\0" * 4))[0]

    def hang_up(self) -> None:
        os.close(self.terminal)
        self.terminal = -1

    def close(self) -> None:
        if self.code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        if self.terminal >= 0:
            self.hang_up()


class Runs:
    """Starts agents in pseudo-terminals."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._started: list[Run] = []

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        for run in self._started:
            run.close()

    def start(self, *arguments: str, columns: int = 80, rows: int = 24) -> Run:
        """Start an agent that answers at once."""
        run = Run(self._store, ("--speed", "0", *arguments), columns, rows)
        self._started.append(run)
        return run

    def ready(self, *arguments: str, **size: int) -> Run:
        run = self.start(*arguments, **size)
        run.sees("for help")
        return run


class Pane:
    """An agent in a tmux pane."""

    def __init__(self, server: str, ident: str) -> None:
        self._server = server
        self.id = ident

    def tmux(self, *arguments: str, text: str | None = None) -> str:
        return tmux(self._server, *arguments, text=text)

    def screen(self) -> list[str]:
        """Return the visible rows, without empty ones at the end."""
        return self.tmux("capture-pane", "-p", "-t", self.id).rstrip("\n").split("\n")

    def history(self) -> str:
        return self.tmux("capture-pane", "-p", "-S", "-", "-t", self.id)

    def shows(self, text: str) -> list[str]:
        wait_for(lambda: text in self.history(), repr(text), self.history)
        return self.screen()

    def rests(self) -> None:
        """Wait until the agent has no turn, and its last paint is complete.

        The cursor comes last in a paint. A key, a resize or a look that overtakes half of a paint meets rows
        that are about to move.
        """
        wait_for(self._is_at_rest, "an agent at rest", self.history)

    def _is_at_rest(self) -> bool:
        facts = "#{pane_width} #{cursor_y} #{pane_title}"
        look = ["display-message", "-p", "-t", self.id, facts, ";", "capture-pane", "-p", "-t", self.id]
        shown = self.tmux(*look)
        first, *rows = shown.rstrip("\n").split("\n")
        columns, cursor_row, title = first.split(" ", 2)
        upper, box, lower, footer = rows[-4:] if len(rows) >= 4 else [""] * 4
        return (
            title == "◇ practice · ready"
            and "esc to interrupt" not in shown
            and upper[:1] == "─"
            and cells(upper) == int(columns)
            and (box, lower) == ("❯", "─" * int(columns))
            and "? for help" in footer
            and int(cursor_row) == len(rows) - 3
        )

    def value(self, name: str) -> str:
        return self.tmux("display-message", "-p", "-t", self.id, f"#{{{name}}}").rstrip("\n")

    def type(self, text: str, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.id, "-l", text)
        if keys:
            self.press(*keys)

    def press(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", self.id, *keys)

    def paste(self, text: str) -> None:
        name = f"b{self.id[1:]}"
        self.tmux("load-buffer", "-b", name, "-", text=text)
        self.tmux("paste-buffer", "-p", "-d", "-b", name, "-t", self.id)

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-t", self.id, "-x", str(columns), "-y", str(rows))

    def box(self) -> list[str]:
        """Return the rows between the last two rules, empty if there is no box."""
        rows = self.screen()
        rules = [index for index, row in enumerate(rows) if row.startswith("──")]
        return rows[rules[-2] + 1 : rules[-1]] if len(rules) >= 2 else []


class Panes:
    """Starts agents in panes of a private tmux server."""

    def __init__(self, server: str, store: Store) -> None:
        self._server = server
        self._store = store

    def start(self, *arguments: str, columns: int = 80, rows: int = 24) -> Pane:
        """Start an agent in a window of its own.

        The pane stays and shows the exit code; Debian's tmux 3.3a loses some with `remain-on-exit`.
        """
        environment = [word for pair in self._store.own.items() for word in ("-e", "=".join(pair))]
        unset = [word for name in ("PYTHONDONTWRITEBYTECODE", "NO_COLOR") for word in ("-u", name)]
        line = shlex.join(["env", *unset, *command_line(*arguments)])
        size = ["-x", str(columns), "-y", str(rows), "-c", str(self._store.folder)]
        pane = tmux(
            self._server,
            *("new-session", "-d", "-P", "-F", "#{pane_id}", *size, *environment),
            f"{line}; echo ended with $?; exec cat",
        )
        return Pane(self._server, pane.strip())

    def ready(self, *arguments: str, **size: int) -> Pane:
        pane = self.start(*arguments, **size)
        pane.shows("for help")
        return pane
