"""Where a program of the comparison lives: its home, tmux and environment, and the record of its fakes."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import until

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

COMMAND_SECONDS = 120.0
_KEPT = ("LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME")
_FAKE = Path(__file__).with_name("fake_claude.py")
# Nothing but the installation may reach a network: what asks for one is refused at once.
_PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_NOWHERE = "http://127.0.0.1:9"


class Failed(Exception):
    """A command of a program failed, or what it should do was not seen."""


@dataclass
class Place:
    """The folders and the environment of one program."""

    folder: Path
    offset: int = 0
    heard: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the folders, the fake, and shells that find it."""
        self.home, self.bin, self.work = self.folder / "home", self.folder / "bin", self.folder / "work"
        self.venv = self.folder / "venv"
        for one in (self.home, self.bin, self.work, self.folder / "t"):
            one.mkdir(parents=True)
        fake = self.bin / "claude"
        fake.write_text(f"#!{sys.executable} -IS\n{_FAKE.read_text(encoding='utf-8')}", encoding="utf-8")
        fake.chmod(0o755)
        path = f"{self.bin}:{self.venv / 'bin'}:{os.environ.get('PATH', os.defpath)}"
        # Some programs type their command into a login shell.
        for name in (".profile", ".bashrc", ".zshrc"):
            (self.home / name).write_text(f"export PATH='{path}'\nunset HISTFILE\n", encoding="utf-8")
        self.environ = {name: os.environ[name] for name in _KEPT if name in os.environ} | {
            "PATH": path,
            "HOME": str(self.home),
            "SHELL": "/bin/bash",
            "TERM": "screen-256color",
            "TMPDIR": str(self.folder),
            "TMUX_TMPDIR": str(self.folder / "t"),
            "COLUMNS": "250",
            **dict.fromkeys(_PROXIES, _NOWHERE),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost"),
        }

    def run(self, argv: Sequence[str], *, stdin: str | None = None) -> str:
        """Run a command to its end and return what it printed; raises Failed with its last words."""
        try:
            done = subprocess.run(
                list(argv),
                input=stdin or "",
                cwd=self.work,
                env=self.environ,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"{Path(argv[0]).name} did not return within {COMMAND_SECONDS:.0f} s") from None
        if done.returncode != 0:
            words = (done.stderr.strip() or done.stdout.strip() or "no word").splitlines()[-1]
            raise Failed(f"exit status {done.returncode}: {words.strip()[:120]}")
        return done.stdout

    def start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a command and do not wait for it."""
        with (self.folder / "commands.log").open("ab") as log:
            return subprocess.Popen(
                list(argv),
                cwd=self.work,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def read_record(self) -> list[dict[str, Any]]:
        """Return everything that the fakes of this place have written down."""
        record = self.bin / "heard.jsonl"
        if record.exists():
            with record.open("rb") as file:
                file.seek(self.offset)
                data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            self.offset += len(whole)
            self.heard += [json.loads(line) for line in whole.splitlines()]
        return self.heard

    def wait_for(
        self, matches: Callable[[dict[str, Any]], bool], what: str, since: int, seconds: float = 30.0
    ) -> dict[str, Any]:
        """Return the first fitting event after the first `since` ones; raises Failed at the deadline."""
        deadline = time.monotonic() + seconds
        while True:
            for event in self.read_record()[since:]:
                if matches(event):
                    return event
            if time.monotonic() > deadline:
                raise Failed(f"{what}: not seen within {seconds:.0f} s")
            time.sleep(0.002)

    def processes(self) -> dict[int, str]:
        """Return the processes that have this place in their environment, with their command lines."""
        found = {}
        # The slash tells `/…/cao/` from a place whose name begins alike.
        mark = f"HOME={self.home}\0".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (entry / "environ").read_bytes() + b"\0":
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(entry.name)] = words.decode("utf-8", "replace").strip()
            except OSError:
                continue
        return found

    def agents(self) -> set[int]:
        """Return the fakes that run; a pid alone may be that of a later process."""
        mark = f"-IS {self.bin / 'claude'}"
        return {pid for pid, words in self.processes().items() if mark in words and is_alive(pid)}

    def clear(self) -> None:
        """End every process of this place and remove its folders."""
        tmux = shutil.which("tmux") or "tmux"
        for socket in self.folder.glob("t/tmux-*/*"):
            subprocess.run(
                [tmux, "-S", str(socket), "kill-server"], env=self.environ, capture_output=True, check=False
            )

        def is_empty() -> bool:
            left = self.processes()
            for pid in left:
                kill(pid)
            return not left

        until(is_empty, f"the end of the processes of {self.folder.name}")
        shutil.rmtree(self.folder, ignore_errors=True)


def kill(pid: int) -> None:
    """Send SIGKILL, if the process is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def is_alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and waits for its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def parent_of(pid: int) -> int:
    """Return the pid of the parent."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(stat.rpartition(")")[2].split()[1])


def when_gone(pid: int, act: Callable[[], object], seconds: float) -> float | None:
    """Act, and return the seconds from the start of the act until the process was gone; None if it stays."""
    handle = os.pidfd_open(pid)
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    gone: list[float] = []
    began = time.monotonic()

    def watch() -> None:
        if poller.poll((COMMAND_SECONDS + seconds) * 1000):
            gone.append(time.monotonic() - began)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    act()
    watcher.join(seconds)
    if watcher.is_alive():
        return None
    os.close(handle)
    return gone[0] if gone else None
