"""The guided tour: what is said, what is typed, and the place it happens in."""

from __future__ import annotations

import os
import time

from mam.surfaces.cli.main import INTERRUPTED, main

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from mam.surfaces.cli.style import Paint

# What is said, and what is typed after `mam`.
STEPS: tuple[tuple[str, str], ...] = (
    (
        "An agent is one command away. It gets a tmux pane, a name, a role and its first message.",
        'create --agent practice --role developer --session dev --prompt "run the tests"',
    ),
    (
        "Two more, each with work of its own.",
        'create --agent practice --role reviewer --session review --prompt "review the login"',
    ),
    ("", 'create --agent practice --role writer --session docs --prompt "describe the API"'),
    ("What are they doing? mam asks processes, hooks, transcripts and screens.", "ls"),
    ("The developer wants to run something, and waits for a person.", "wait dev --for waiting --timeout 30"),
    ("Who waits for a person?", "ls --waiting"),
    ("How does mam know?", "explain dev"),
    ("This is what it asks.", "read dev --lines 9"),
    ("The writer finishes in the meantime.", "wait docs --for idle --timeout 30"),
    ("A stop keeps the conversation, and proves that nothing is left running.", "stop docs --reason lunch"),
    ("", "ls"),
    ("Nothing is lost: the same session goes on, with its history.", "resume docs"),
    ("", "read docs --lines 12"),
    ("Who did what, and why?", "log"),
)


class Failed(Exception):
    """A command of the tour ended with another exit code than 0."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Tour:
    """Types the commands one after the other, and keeps what came out of them where that is wanted."""

    def __init__(self, paint: Paint, *, pace: float, record: bool) -> None:
        """`pace` is how long a line is left to be read, in seconds; `record` keeps quiet and collects."""
        self.paint = paint
        self.pace = pace
        self.record = record
        self.steps: list[dict[str, Any]] = []

    def run(self) -> None:
        """Go through every step. Raises Failed, or KeyboardInterrupt where the person has had enough."""
        for said, command in STEPS:
            self.say(said)
            self.type(command)

    def say(self, text: str) -> None:
        """Tell the person something."""
        if text and not self.record:
            print(f"\n{text}", flush=True)
            time.sleep(self.pace * 4)

    def type(self, command: str) -> None:
        """Run one command as a person would have typed it."""
        import shlex

        words = shlex.split(command)
        if self.record:
            self._record(command, words)
            return
        print(f"{self.paint('$', 'dim')} {self.paint(f'mam {command}', 'bold')}", flush=True)
        _check(main(words))
        time.sleep(self.pace * (6 if words[0] in ("ls", "explain", "read", "log") else 2))

    def _record(self, command: str, words: list[str]) -> None:
        from contextlib import redirect_stdout
        from io import StringIO

        with redirect_stdout(StringIO()) as kept:
            code = main(words)
        self.steps.append({"command": f"mam {command}", "exit_code": code, "output": kept.getvalue()})
        _check(code)


class Place:
    """A folder and an environment of the tour's own; everything is put back afterwards."""

    def __init__(self, server: str) -> None:
        """Name the tmux server of the tour."""
        self.server = server

    def __enter__(self) -> Place:
        """Make the folder and go there."""
        from tempfile import mkdtemp

        self.folder = os.path.realpath(mkdtemp(prefix="mam-demo-"))
        self.workspace = os.path.join(self.folder, "shop")
        os.mkdir(self.workspace)
        self._environ = dict(os.environ)
        self._before = _current_directory()
        for name in [one for one in os.environ if one.startswith(("MAM_", "TMUX", "AGENT_SESSIONS_"))]:
            if name not in ("MAM_DEBUG", "TMUX_TMPDIR"):
                del os.environ[name]
        # With a home of its own, neither the person's tmux settings nor their state take part.
        for name, path in (
            ("HOME", ""),
            ("XDG_STATE_HOME", "state"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CONFIG_HOME", "config"),
        ):
            os.environ[name] = os.path.join(self.folder, path).rstrip("/")
        # Nobody must be awake who still writes into the folder when it is taken away.
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
        """Go back to where the person was."""
        try:
            os.chdir(self._before)
        except OSError:
            os.chdir("/")
        os.environ.clear()
        os.environ.update(self._environ)

    def remove(self) -> None:
        """Delete the folder, and see that it is gone."""
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
