"""A small world for each cell: a root, a home, a tmux server of its own, and strangers beside them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.adapters.store.making import Store
from tests.faults.machine import KEEPER, Machine, start_warm_process
from tests.matrix.broker_proxy import BrokerProxy
from tests.processes import is_running
from tests.waiting import wait_until

import mam
from mam.adapters.tmux.client import Tmux, clean_environment
from mam.app.brokers import config as brokers
from mam.app.context.context import Resources
from mam.app.jobs.new_job import record_job

ARGS = ("--speed", "0")
JOB = "1f00ab42"
ROLE = "dev"
TEAM = "name: pair\nabout: a team of one\nroles:\n  - role: dev\n"
# What a verb changes is told by the other tables: hooks of a live agent report at any time, a claim without
# an owner waits for recovery, and the log may say that somebody has put an older state back.
_ASIDE = tuple(
    f'INSERT INTO "{table}"' for table in ("evidence", "intents", "log", "meta", "sqlite_sequence")
)
Records = tuple[list[str], bytes | None]


class World(Machine):
    """The state that every cell of a row begins with, brought back for each cell."""

    def __init__(
        self,
        place: Path,
        server: str,
        args: tuple[str, ...] = ARGS,
        *,
        proxy: BrokerProxy | None = None,
        shim: Path | None = None,
    ) -> None:
        """Use the environment as it is; `proxy` is the way to the broker that the environment names.

        With a shim there is a warm process in which `run` calls the verbs of the matrix with faults.
        """
        self.proxy = proxy
        self.place = place
        self.root = place / "root"
        self.saved = place / "saved"
        self.server = server
        self.tmux = Tmux(server)
        self.clock: Callable[[], float] | None = None
        self.environ: Mapping[str, str] | None = None
        self.team_file = place / "pair.yaml"
        self.team_file.write_text(TEAM, encoding="utf-8")
        self.stranger = subprocess.Popen(["sleep", "1000000"], stdin=subprocess.DEVNULL)
        self._keep_server()
        self._prepare(args)
        self.process = None if shim is None else start_warm_process("tests.matrix.shim_server", shim)

    def close(self) -> None:
        """End the stranger and the warm process."""
        if self.process is not None:
            super().close()
        self.stranger.kill()
        self.stranger.wait()

    def _prepare(self, args: tuple[str, ...]) -> None:
        """Keep a root with an ended session that has a conversation, an open job and an open task."""
        self.clear()
        with self.open() as fleet:
            fleet.sessions.create("practice", name="one", args=[*args])
            self.wait_for_screen("Practice agent")
            fleet.sessions.stop("one", force=True)
            context = fleet._access.context
            broker = brokers.find(context)
            facts = {} if broker is None else {"broker": broker.as_json(), "topic_prefix": broker.prefix}
            record_job(context, fleet.caller, JOB, "the task", **facts)
            fleet.tasks.add("the task of a role", role=ROLE)
        self.begin_conversations()
        self.save()

    # ------------------------------------------------------------ a cell

    def open(self) -> mam.Fleet:
        """Open the root as the next command does, with the clock of the fault."""
        fleet = mam.open(str(self.root), environ=self.environ)
        if self.clock is not None:
            context = fleet._access.context
            resources = Resources(context.paths, context.environ, self.clock)
            fleet._access.context = context.replace(clock=self.clock, resources=resources)
        return fleet

    def begin(self) -> None:
        """Bring the kept state back, with the strangers: a process, and a pane beside those of the root."""
        self._keep_server()
        self.restore()
        self.start_foreign("bystander")

    def _keep_server(self) -> None:
        """Have the server run, with a pane that keeps it running."""
        if not any(pane.mark == KEEPER for pane in self.tmux.panes().panes):
            self.tmux.start("keeper", ["sleep", "1000000"], cwd="/", session_id=KEEPER, root="/")

    def mend(self) -> None:
        """Do what a person does: look to the server, let the monitor record the deaths, resume the dead."""
        self._keep_server()
        with self.open() as fleet:
            fleet.monitor.once()
            for row in self.rows().values():
                if row["status"] == "terminated" and row["resumable"]:
                    fleet.sessions.resume(row["name"])

    # ------------------------------------------------------------ what is looked at

    def records(self) -> Records:
        """Return what the database holds on sessions, messages, jobs and teams, and the registry file."""
        store = Store(self.root, time.time)
        try:
            dump = [line for line in store.dump() if not line.startswith(_ASIDE)]
            return dump, store.yaml.read_bytes() if store.yaml.exists() else None
        finally:
            store.registry.close()

    def screen(self, name: str) -> str:
        """Return what the pane of a tmux session shows."""
        done = subprocess.run(
            ["tmux", "-L", self.server, "capture-pane", "-p", "-t", f"={name}:"],
            env=clean_environment(os.environ),
            capture_output=True,
            encoding="utf-8",
            check=True,
        )
        return done.stdout

    def check_strangers(self, *, with_pane: bool) -> None:
        """I7 and I4: the processes of others live, and nothing was typed into their panes."""
        assert is_running(self.stranger.pid), "I7: a process of somebody else was ended"
        if with_pane:
            assert not self.screen("bystander").strip(), "I4: something was typed into the pane of another"

    def server_pid(self) -> int:
        """Return the pid of the tmux server, which must run."""
        pid = self.tmux.server_pid()
        assert pid is not None
        return pid

    def row(self, name: str = "one") -> dict[str, Any]:
        """Return one row of the registry."""
        return self.rows()[name]

    def job(self) -> dict[str, Any]:
        """Return the record of the open job."""
        with self.open() as fleet:
            return fleet.jobs.status(JOB)

    def agent_pid(self) -> int:
        """Return the process of the session."""
        return self.row()["pane"]["pid"]

    def wait_for_screen(self, text: str, name: str = "one") -> None:
        """Wait until a pane shows a text."""

        def shows() -> bool:
            with suppress(subprocess.CalledProcessError):
                return text in self.screen(name)
            return False

        wait_until(shows, lambda: f"{text!r} on the screen of {name}")
