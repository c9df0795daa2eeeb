"""What mam adds to an agent's own boot and to its own exit.

The same practice agent, with the same arguments and hooks, is started and left by bare tmux: its boot
ends when its SessionStart hook has written the payload, its exit when the process is gone.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import shutil
import time
import uuid
from typing import TYPE_CHECKING

import mam as api
from bench.measure import DEADLINE_SECONDS, Budget, Row, alternate, run, until
from bench.stage import PYTHON, Stage, mam
from mam.adapters.agents import hook_command
from mam.adapters.agents.kind import Request
from mam.adapters.agents.practice import Practice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BOOT, EXIT = "the agent alone, until its hook", "the agent alone, /exit until gone"
_numbers = itertools.count(1)


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Start three agents per round, then end them: bare, by the API, by the shell."""
    tell("starting and stopping practice agents")
    with Stage() as stage, api.open(str(stage.root), environ=stage.environ) as fleet:
        stage.keep_server()
        bare = Bare(stage)
        names: dict[str, str] = {}

        def new(key: str) -> str:
            names[key] = f"bench-{next(_numbers)}"
            return names[key]

        def shell(*words: str) -> None:
            run(mam(*words, "--workspace", str(stage.root)), stage.environ)

        found = alternate(
            2 if quick else 25,
            {
                BOOT: bare.start,
                "create api": lambda: fleet.sessions.create("practice", name=new("api")) and None,
                "create shell": lambda: shell("create", "--agent", "practice", "--session", new("shell")),
            },
            {
                EXIT: bare.leave,
                "stop api": lambda: fleet.sessions.stop(names["api"]) and None,
                "stop shell": lambda: shell("stop", names["shell"]),
            },
        )
    create, stop = Budget("beyond", 150), Budget("beyond", 100)
    yield Row("create, in process", found["create api"], BOOT, found[BOOT], create)
    yield Row("mam create, from the shell", found["create shell"], BOOT, found[BOOT], create)
    yield Row("stop, in process", found["stop api"], EXIT, found[EXIT], stop)
    yield Row("mam stop, from the shell", found["stop shell"], EXIT, found[EXIT], stop)


class Bare:
    """The practice agent in a pane that mam knows nothing of."""

    def __init__(self, stage: Stage) -> None:
        """Give the hook a spool of its own."""
        self.stage = stage
        self.spool = stage.folder / "spool"
        self.pid = 0

    def start(self) -> float:
        """Return the seconds from tmux new-session until the agent says that it has started."""
        shutil.rmtree(self.spool, ignore_errors=True)
        self.spool.mkdir()
        kind = Practice()
        what = kind.launch(
            Request(
                command=["practice"],
                program=PYTHON,
                environ=self.stage.environ,
                stores=kind.stores(self.stage.environ),
                conversation=str(uuid.uuid4()),
                hook=hook_command.command(str(self.spool)),
            )
        )
        env = [word for key, value in what.env.items() for word in ("-e", f"{key}={value}")]
        argv = self.stage.tmux_argv(
            *("new-session", "-d", "-s", "bare", "-x", "200", "-y", "50", "-c", str(self.stage.root)),
            *("-e", "MAM_SESSION=s_00000000", *env, "--", *what.argv),
        )
        began = time.perf_counter()
        run(argv, self.stage.environ)
        until(self._payload, "the agent's SessionStart hook")
        return time.perf_counter() - began

    def _payload(self) -> bool:
        """Tell whether the payload is there, whole: the hook renames it into place."""
        found = next(self.spool.glob("[!.]*.json"), None)
        if found is None:
            return False
        self.pid = int(found.name.split(".")[1])
        return bool(json.loads(found.read_bytes())["hook_event_name"] == "SessionStart")

    def leave(self) -> float:
        """Return the seconds from typing the exit word until the process is gone."""
        handle = os.pidfd_open(self.pid)
        argv = self.stage.tmux_argv("send-keys", "-t", "=bare:", "/exit", "Enter")
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        began = time.perf_counter()
        run(argv, self.stage.environ)
        gone = poller.poll(DEADLINE_SECONDS * 1000)
        seconds = time.perf_counter() - began
        os.close(handle)
        if not gone:
            raise RuntimeError("the agent did not leave")
        return seconds
