"""The guided tour of `mam demo`: its texts, its commands, and its temporary environment."""

from __future__ import annotations

import os
import time

from mam.surfaces.cli.main import INTERRUPTED, main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from mam.surfaces.cli.style import Paint

# A text for the person, and the arguments of a `mam` command.
STEPS: tuple[tuple[str, str], ...] = (
    (
        "One command starts an agent. It gets a tmux pane, a name, a role and its first message.",
        'create --agent practice --role developer --session dev --prompt "run the tests"',
    ),
    (
        "Start two more, each with its own work.",
        'create --agent practice --role reviewer --session review --prompt "review the login"',
    ),
    ("", 'create --agent practice --role writer --session docs --prompt "describe the API"'),
    ("What are they doing? mam asks processes, hooks, transcripts and screens.", "ls"),
    ("The developer wants to run a command, and waits for a person.", "wait dev --for waiting --timeout 30"),
    ("Who waits for a person?", "ls --waiting"),
    ("How does mam know?", "explain dev"),
    ("What does it ask?", "read dev --lines 9"),
    ("Meanwhile the writer finishes.", "wait docs --for idle --timeout 30"),
    ("A stop keeps the conversation, and proves that no process is left.", "stop docs --reason lunch"),
    ("", "ls"),
    ("Nothing is lost: resume continues the same session with its history.", "resume docs"),
    ("", "read docs --lines 12"),
    ("Who did what, and why?", "log"),
)


class Failed(Exception):
    """A command of the tour ended with another exit code than 0."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Tour:
    """Runs the commands one after the other, and records their output if that is requested."""

    def __init__(self, paint: Paint, *, pace: float, record: bool) -> None:
        """`pace` scales the pauses for reading, in seconds; `record` prints nothing and keeps the output."""
        self.paint = paint
        self.pace = pace
        self.record = record
        self.steps: list[dict[str, Any]] = []

    def run(self) -> None:
        """Run every step; raise Failed if a command fails, and KeyboardInterrupt if the person interrupts."""
        for text, command in STEPS:
            self.say(text)
            self.run_command(command)

    def say(self, text: str) -> None:
        """Print a text and leave time to read it."""
        if text and not self.record:
            print(f"\n{text}", flush=True)
            time.sleep(self.pace * 4)

    def run_command(self, command: str) -> None:
        """Print one command and run it."""
        import shlex

        arguments = shlex.split(command)
        if self.record:
            self._record(command, arguments)
            return
        print(f"{self.paint('$', 'dim')} {self.paint(f'mam {command}', 'bold')}", flush=True)
        _check(main(arguments))
        time.sleep(self.pace * (6 if arguments[0] in ("ls", "explain", "read", "log") else 2))

    def _record(self, command: str, arguments: list[str]) -> None:
        from contextlib import redirect_stdout
        from io import StringIO

        with redirect_stdout(StringIO()) as output:
            code = main(arguments)
        self.steps.append({"command": f"mam {command}", "exit_code": code, "output": output.getvalue()})
        _check(code)


class TourEnvironment:
    """A temporary folder and environment variables for the tour; the old ones are restored afterwards."""

    def __init__(self, server: str) -> None:
        """Keep the name of the tour's tmux server."""
        self.server = server

    def __enter__(self) -> TourEnvironment:
        """Make the folder and change into it."""
        from tempfile import mkdtemp

        self.folder = os.path.realpath(mkdtemp(prefix="mam-demo-"))
        self.workspace = os.path.join(self.folder, "shop")
        os.mkdir(self.workspace)
        self._environ = dict(os.environ)
        self._directory = _current_directory()
        for name in [key for key in os.environ if key.startswith(("MAM_", "TMUX", "AGENT_SESSIONS_"))]:
            if name not in ("MAM_DEBUG", "TMUX_TMPDIR"):
                del os.environ[name]
        # A separate home keeps the person's tmux settings and user state out of the tour.
        for name, path in (
            ("HOME", ""),
            ("MAM_STATE_HOME", "state"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CONFIG_HOME", "config"),
        ):
            os.environ[name] = os.path.join(self.folder, path).rstrip("/")
        # A resident could still write into the folder while it is being deleted.
        settings = os.path.join(self.folder, "config", "mam")
        os.makedirs(settings)
        with open(os.path.join(settings, "config.toml"), "w", encoding="utf-8") as file:
            file.write('resident = "off"\n')
        os.environ["TMUX_SERVER_NAME"] = self.server
        os.chdir(self.workspace)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the directory and the environment variables."""
        try:
            os.chdir(self._directory)
        except OSError:
            os.chdir("/")
        os.environ.clear()
        os.environ.update(self._environ)

    def remove(self) -> None:
        """Delete the folder."""
        from shutil import rmtree

        rmtree(self.folder)


def _check(code: int) -> None:
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code:
        raise Failed(code)


def _current_directory() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"
