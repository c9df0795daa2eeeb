"""The programs of the comparison: where each comes from, and how a user of it does each work.

Every command is the one that the program's own help or documentation gives for the work.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ClassVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from bench.measure import until
from bench.peers.place import Failed, is_alive, parent_of
from bench.stage import mam as mam_argv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.peers.place import Place

# Name in the tables: distribution, version, and the Python that it asks for.
PINS = {
    "CAO": ("cli-agent-orchestrator", "2.5.4", (3, 10)),
    "hcom": ("hcom", "0.7.31", (3, 8)),
    "overcode": ("overcode", "0.6.2", (3, 12)),
    "tmux-cli": ("claude-code-tools", "1.30.2", (3, 11)),
    "libtmux": ("libtmux", "0.62.0", (3, 10)),
}
_AT_ONCE = 4


class Program:
    """One program in its place. What a method cannot do, it raises as Failed."""

    name = ""
    notes: tuple[str, ...] = ()
    # The work, and the command as a person types it.
    commands: ClassVar[dict[str, str]] = {}
    # What stands for the manager in the test that kills it, and what a user then does.
    manager, remedy = "", ""

    def __init__(self, place: Place) -> None:
        """Keep the place; nothing is installed yet."""
        self.place = place

    def install(self, uv: str) -> None:
        """Install the pinned version into an environment of its own."""
        distribution, version, python = PINS[self.name]
        pin = f"{distribution}=={version}"
        environ = {**os.environ, "UV_CACHE_DIR": str(self.place.folder / "uv"), "PIP_NO_CACHE_DIR": "1"}
        fits = sys.version_info[:2] >= python
        venv = [uv, "venv", "--quiet", "--python", sys.executable, str(self.place.venv)]
        into = str(self.place.venv / "bin" / "python")
        fetch = [uv, "pip", "install", "--quiet", "--python", into, pin]
        if not fits:
            # uv has no switch for it.
            venv.insert(2, "--seed")
            fetch = [into, "-m", "pip", "install", "--quiet", "--ignore-requires-python", pin]
        for argv in (venv, fetch):
            done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=600)
            if done.returncode != 0:
                words = [line for line in done.stderr.splitlines() if line.strip()]
                raise Failed(f"cannot be installed here: {words[-1].strip()[:160] if words else 'no word'}")

    def start(self) -> None:
        """Start what has to run before the first session."""

    def create(self, name: str) -> str:
        """Start a session and return the handle by which later commands name it."""
        raise NotImplementedError

    def list(self) -> str:
        """Return what the program prints as its list of sessions."""
        raise NotImplementedError

    def is_listed(self, handle: str, text: str) -> bool:
        """Tell whether the list shows a session."""
        return re.search(rf"(?<![\w-]){re.escape(handle)}(?![\w-])", text) is not None

    def send_argv(self, handle: str, text: str) -> list[str]:
        """Return the command that sends a text."""
        raise NotImplementedError

    def stop(self, handle: str) -> None:
        """Stop a session."""
        raise NotImplementedError

    def fill(self, names: Sequence[str]) -> list[str]:
        """Start many sessions, not measured."""
        with ThreadPoolExecutor(_AT_ONCE) as crew:
            return list(crew.map(self.create, names))

    def manager_pids(self, agent: int) -> list[int]:
        """Return the processes that manage a session beside tmux and the agent; none where none stay."""
        return []

    def recover(self, handle: str) -> None:
        """Do what a user does after the manager was killed."""

    def run(self, *words: str, stdin: str | None = None) -> str:
        """Run a command of the environment."""
        return self.place.run([str(self.place.venv / "bin" / words[0]), *words[1:]], stdin=stdin)


class Mam(Program):
    """mam as it comes, with its resident."""

    name = "mam"
    commands: ClassVar = {
        "create": "mam create --agent claude --session NAME",
        "list": "mam ls",
        "send": "mam send NAME TEXT",
        "stop": "mam stop NAME",
    }
    manager, remedy = "its resident", "nothing: the next command starts it"
    notes = (
        "Its stop waits 0.3 s for children that outlive the agent, asks them to end (SIGTERM), and kills them"
        " after 1 s; under load it gives them longer.",
    )

    def install(self, uv: str) -> None:
        """The mam of this checkout is there."""
        self.place.environ["TMUX_SERVER_NAME"] = "mam"

    def create(self, name: str) -> str:
        self.place.run(mam_argv("create", "--agent", "claude", "--session", name))
        return name

    def list(self) -> str:
        return self.place.run(mam_argv("ls"))

    def send_argv(self, handle: str, text: str) -> list[str]:
        return mam_argv("send", handle, text)

    def stop(self, handle: str) -> None:
        self.place.run(mam_argv("stop", handle))

    def manager_pids(self, agent: int) -> list[int]:
        return [pid for pid, words in self.place.processes().items() if re.search(r"\bmonitor\b", words)]


class Cao(Program):
    """CAO with its server on a port of its own."""

    name = "CAO"
    commands: ClassVar = {
        "create": "cao launch --agents developer --provider claude_code --session-name NAME"
        " --headless --async --auto-approve",
        "list": "cao session list",
        "send": "cao session send NAME TEXT --async",
        "stop": "cao shutdown --session NAME",
    }
    manager, remedy = "cao-server", "starts cao-server again"
    notes = (
        "The sessions beyond those that are timed were started with POST /sessions, eight at a time.",
        "The server was started before the measurement.",
    )

    def start(self) -> None:
        if "CAO_API_PORT" not in self.place.environ:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.place.environ["CAO_API_PORT"] = str(free.getsockname()[1])
        port = self.place.environ["CAO_API_PORT"]
        self.server = self.place.start([str(self.place.venv / "bin" / "cao-server"), "--port", port])
        self.http = build_opener(ProxyHandler({}))
        until(self._answers, "cao-server", 60)

    def _answers(self) -> bool:
        if self.server.poll() is not None:
            raise Failed(f"cao-server ended with exit status {self.server.returncode}")
        try:
            with self.http.open(self._url("/health"), timeout=5):
                return True
        except OSError:
            time.sleep(0.05)
            return False

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.place.environ['CAO_API_PORT']}{path}"

    def create(self, name: str) -> str:
        self.run(
            *("cao", "launch", "--agents", "developer", "--provider", "claude_code", "--session-name", name),
            *("--headless", "--async", "--auto-approve"),
        )
        return f"cao-{name}"

    def fill(self, names: Sequence[str]) -> list[str]:
        with ThreadPoolExecutor(2 * _AT_ONCE) as crew:
            return list(crew.map(self._post, names))

    def _post(self, name: str) -> str:
        words = {
            "agent_profile": "developer",
            "provider": "claude_code",
            "session_name": name,
            "working_directory": str(self.place.work),
        }
        try:
            with self.http.open(
                Request(self._url(f"/sessions?{urlencode(words)}"), method="POST"), timeout=120
            ):
                return f"cao-{name}"
        except HTTPError as error:
            raise Failed(f"POST /sessions: {error.code} {error.read()[:100]!r}") from None
        except OSError as error:
            raise Failed(f"POST /sessions: {error}") from None

    def list(self) -> str:
        return self.run("cao", "session", "list")

    def send_argv(self, handle: str, text: str) -> list[str]:
        return [str(self.place.venv / "bin" / "cao"), "session", "send", handle, text, "--async"]

    def stop(self, handle: str) -> None:
        self.run("cao", "shutdown", "--session", handle)

    def manager_pids(self, agent: int) -> list[int]:
        return [self.server.pid]

    def recover(self, handle: str) -> None:
        self.server.wait(30)
        self.start()


class Hcom(Program):
    """hcom with agents in tmux, to which it types; it names them itself."""

    name = "hcom"
    commands: ClassVar = {
        "create": "hcom 1 claude --terminal tmux --json",
        "list": "hcom list",
        "send": "hcom send @NAME --from bench -- TEXT",
        "stop": "hcom kill NAME",
    }
    manager, remedy = "the `hcom pty` of the session", "`hcom r NAME`"
    notes = (
        "`hcom config claude_delivery inject`: its other way needs mods of Claude Code; the fake has none.",
        "It hands a text over as context of a hook; the text counts as arrived when the fake's hook gets it.",
    )

    def start(self) -> None:
        self.run("hcom", "config", "claude_delivery", "inject")

    def create(self, name: str) -> str:
        return self._launch(1)[0]

    def fill(self, names: Sequence[str]) -> list[str]:
        return [name for at in range(0, len(names), 10) for name in self._launch(len(names[at : at + 10]))]

    def _launch(self, count: int) -> list[str]:
        out = self.run("hcom", str(count), "claude", "--terminal", "tmux", "--json")
        return [str(name) for name in json.loads(out.strip().splitlines()[-1])["names"]]

    def list(self) -> str:
        return self.run("hcom", "list")

    def send_argv(self, handle: str, text: str) -> list[str]:
        return [str(self.place.venv / "bin" / "hcom"), "send", f"@{handle}", "--from", "bench", "--", text]

    def stop(self, handle: str) -> None:
        self.run("hcom", "kill", handle)

    def is_listed(self, handle: str, text: str) -> bool:
        return super().is_listed(handle, text.partition("Recently stopped")[0])

    def manager_pids(self, agent: int) -> list[int]:
        return [parent_of(agent)]

    def recover(self, handle: str) -> None:
        self.run("hcom", "r", handle, "--terminal", "tmux")


class Overcode(Program):
    """overcode with Claude Code as the backend and with its monitor daemon."""

    name = "overcode"
    commands: ClassVar = {
        "create": "overcode launch --name NAME",
        "list": "overcode list",
        "send": "overcode send NAME TEXT",
        "stop": "overcode kill NAME",
    }
    manager, remedy = "its monitor daemon", "starts the monitor daemon again"
    notes = (
        "It asks for Python 3.12; under an older one it is installed with `pip --ignore-requires-python`.",
        "Its monitor daemon was started before the measurement.",
    )

    def start(self) -> None:
        self.daemon = self.place.start([str(self.place.venv / "bin" / "overcode"), "monitor-daemon", "start"])
        until(self._daemons, "the monitor daemon of overcode", 30)

    def _daemons(self) -> list[int]:
        return [
            pid
            for pid, words in self.place.processes().items()
            if re.search(r"monitor[-_]daemon", words) and is_alive(pid)
        ]

    def create(self, name: str) -> str:
        self.run("overcode", "launch", "--name", name)
        return name

    def list(self) -> str:
        return self.run("overcode", "list")

    def send_argv(self, handle: str, text: str) -> list[str]:
        return [str(self.place.venv / "bin" / "overcode"), "send", handle, text]

    def stop(self, handle: str) -> None:
        self.run("overcode", "kill", handle)

    def manager_pids(self, agent: int) -> list[int]:
        return self._daemons()

    def recover(self, handle: str) -> None:
        self.start()


class TmuxCli(Program):
    """tmux-cli outside of tmux: a window per agent, in a session of its own."""

    name = "tmux-cli"
    commands: ClassVar = {
        "create": "tmux-cli launch claude",
        "list": "tmux-cli list_windows",
        "send": "tmux-cli send TEXT --pane=WINDOW",
        "stop": "tmux-cli kill --pane=WINDOW",
    }
    manager = "none"

    def create(self, name: str) -> str:
        # It gives a window no name: the name is the number of the window.
        return self.run("tmux-cli", "launch", "claude").strip().splitlines()[-1]

    def fill(self, names: Sequence[str]) -> list[str]:
        # Windows that are launched at the same time may take each other's number.
        return [self.create(name) for name in names]

    def list(self) -> str:
        return self.run("tmux-cli", "list_windows")

    def is_listed(self, handle: str, text: str) -> bool:
        return re.search(rf"^\s*{handle.rpartition(':')[2]}: ", text, re.MULTILINE) is not None

    def send_argv(self, handle: str, text: str) -> list[str]:
        return [str(self.place.venv / "bin" / "tmux-cli"), "send", text, f"--pane={handle}"]

    def stop(self, handle: str) -> None:
        self.run("tmux-cli", "kill", f"--pane={handle}")


class Libtmux(Program):
    """libtmux, a library: a script of one line for each work."""

    name = "libtmux"
    commands: ClassVar = {
        "create": 'Server().new_session(session_name=NAME, window_command="claude")',
        "list": "print([session.session_name for session in Server().sessions])",
        "send": "Server().sessions.get(session_name=NAME).active_pane.send_keys(TEXT, literal=True)",
        "stop": "Server().sessions.get(session_name=NAME).kill()",
    }
    manager = "none"
    notes = ("Each work is a script of one line, run by `python -c` with `from libtmux import Server`.",)

    def _argv(self, work: str, *words: str) -> list[str]:
        line = self.commands[work]
        for number, name in enumerate(("NAME", "TEXT"), 1):
            line = re.sub(rf"\b{name}\b", f"argv[{number}]", line)
        script = f"from sys import argv\nfrom libtmux import Server\n{line}"
        return [str(self.place.venv / "bin" / "python"), "-c", script, *words]

    def create(self, name: str) -> str:
        self.place.run(self._argv("create", name))
        return name

    def list(self) -> str:
        return self.place.run(self._argv("list"))

    def send_argv(self, handle: str, text: str) -> list[str]:
        return self._argv("send", handle, text)

    def stop(self, handle: str) -> None:
        self.place.run(self._argv("stop", handle))


PROGRAMS: tuple[type[Program], ...] = (Mam, Cao, Hcom, Overcode, TmuxCli, Libtmux)


def version_of(name: str) -> str:
    """Return the distribution and the version of a program, as the tables show it."""
    if name == "mam":
        from importlib.metadata import version

        return f"multi-agent-mux {version('multi-agent-mux')}"
    distribution, number, _ = PINS[name]
    return f"{distribution} {number}"
