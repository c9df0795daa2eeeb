"""A root that verbs are killed in, and the look at it afterwards."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.adapters.store.making import Store, check_invariants
from tests.processes import is_running
from tests.settling import dump_of, recorded, settle
from tests.waiting import wait_until

import mam
from mam.adapters.store.tables import teams
from mam.adapters.tmux.client import Tmux, clean_environment
from mam.app.context.liveness import check_liveness
from mam.app.sessions.death import record_if_dead
from mam.core.errors import NameTaken, SessionNotFound
from mam.core.liveness_values import Liveness

COUNT, KILL_BEFORE, KILL_AFTER, FAIL_ONCE, FAIL_FROM, FULL, LOSE_POWER = range(7)
ENOSPC, EIO, EROFS = errno.ENOSPC, errno.EIO, errno.EROFS
REPOSITORY = Path(__file__).resolve().parents[2]
KEEPER = "s_ffffffff"


# A verb that is given the fleet and the sessions: their status by name.
NextVerb = Callable[["mam.Fleet", dict[str, str]], None]


def _settles(fleet, _statuses: dict[str, str]) -> None:
    settle(fleet)


def _lists(fleet, _statuses: dict[str, str]) -> None:
    assert all(one["status"] for one in fleet.sessions.ls()["sessions"])


def _reads_the_log(fleet, _statuses: dict[str, str]) -> None:
    fleet.sessions.log()


def _asks_for_a_status(fleet, statuses: dict[str, str]) -> None:
    with suppress(SessionNotFound):
        fleet.sessions.status(min(statuses, default="nobody"))


def _renames_an_unknown_session(fleet, _statuses: dict[str, str]) -> None:
    _is_refused(fleet, "nobody", "somebody")


def _takes_a_name_that_is_taken(fleet, statuses: dict[str, str]) -> None:
    # The fork of a drill that died is removed before the name is looked for.
    names = [*sorted(name for name in statuses if not name.startswith("drill-")), "nobody", "somebody"]
    _is_refused(fleet, names[1], names[0])


def _is_refused(fleet, name: str, new_name: str) -> None:
    try:
        fleet.sessions.rename(name, new_name)
    # What a person has removed in the file is found by nobody.
    except (NameTaken, SessionNotFound):
        return
    raise AssertionError(f"'{name}' was renamed to '{new_name}'")


# The verb that comes after a fault: one that changes something, some that only read, some that are refused.
NEXT_VERBS: tuple[NextVerb, ...] = (
    _settles,
    _lists,
    _renames_an_unknown_session,
    _reads_the_log,
    _takes_a_name_that_is_taken,
    _asks_for_a_status,
)


def start_warm_process(module: str, shim: Path) -> subprocess.Popen[str]:
    """Start the process that runs each verb in a child of its own, with the faults of the shim."""
    return subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=REPOSITORY,
        env={**os.environ, "LD_PRELOAD": str(shim)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


class Machine:
    """One root, one home, one tmux server, and a warm process that runs verbs with faults."""

    def __init__(self, shim: Path, place: Path, server: str) -> None:
        """Use the environment as it is: HOME and the XDG folders must lie in `place`."""
        self.place = place
        self.root = place / "root"
        self.saved = place / "saved"
        self.tmux = Tmux(server)
        self.tmux.start("keeper", ["sleep", "1000000"], cwd="/", session_id=KEEPER, root="/")
        self.process = start_warm_process("tests.faults.server", shim)
        self.clear()

    def close(self) -> None:
        """End the warm process."""
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()

    @property
    def folders(self) -> list[str]:
        """Where every call that changes a file is counted: the workspace and the home."""
        return [str(self.root), os.environ["HOME"]]

    def run(
        self, verb: str, n: int = 0, mode: int = COUNT, number: int = 0, again: str | None = None
    ) -> dict:
        """Run a verb in a fresh process, with a fault at call n.

        `number` is an errno, or the seed of a loss of power.
        """
        aside = self.place / "aside"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        request = {"verb": verb, "root": str(self.root), "folders": self.folders, "n": n, "mode": mode}
        request |= {"number": number, "again": again, "aside": str(aside)}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        assert line, "the process that runs the verbs is gone"
        answer = json.loads(line)
        for part in ("error", "again", "closing"):
            error = answer.get(part) or {}
            assert error.get("code") not in ("traceback", "died"), error["message"]
        return answer

    # ------------------------------------------------------------ the state before

    def clear(self) -> None:
        """Begin with nothing."""
        self.end_panes()
        for folder in (self.root, *map(Path, (os.environ["XDG_STATE_HOME"], os.environ["XDG_DATA_HOME"]))):
            self._empty(folder)
            folder.mkdir(parents=True)

    def tmux_words(self, *words: str) -> None:
        """Run tmux on the machine's server, as a person at a terminal does."""
        subprocess.run(
            ["tmux", "-L", self.tmux.server, *words], env=clean_environment(os.environ), check=True
        )

    def start_foreign(self, name: str) -> None:
        """Start a pane that nobody registered."""
        self.tmux_words("new-session", "-d", "-s", name, "cat")

    def kill_agent(self, name: str) -> None:
        """End a session's process as a crash does, and have it recorded; its pane stays."""
        with mam.open(str(self.root)) as fleet:
            row = fleet.sessions.get(name).row
            os.kill(row["pane"]["pid"], signal.SIGKILL)
            self.until(
                lambda: check_liveness(fleet._access.context, row).state == Liveness.DEAD,
                "the agent does not die",
            )
            record_if_dead(fleet._access.context, fleet.caller, row)

    def end_panes(self) -> None:
        """Close every pane but the keeper's; an agent gets no time for last words."""
        panes = [pane for pane in self.tmux.panes().panes if pane.mark != KEEPER]
        for pane in panes:
            # A launcher whose launch was withdrawn ends by itself.
            with suppress(ProcessLookupError):
                if not pane.dead:
                    os.kill(pane.pid, signal.SIGKILL)
            self.tmux.kill_pane(pane.id, mark=None)
        pids = [pane.pid for pane in panes if not pane.dead]
        self.until(lambda: not any(map(is_running, pids)), "a killed process does not end")

    def _empty(self, folder: Path) -> None:
        """Remove a folder into which a hook of a dying agent may still write."""

        def is_gone() -> bool:
            shutil.rmtree(folder, ignore_errors=True)
            return not folder.exists()

        self.until(is_gone, f"{folder} cannot be removed")

    def save(self) -> None:
        """Keep the state on disk, to begin many cases with it."""
        shutil.rmtree(self.saved, ignore_errors=True)
        for name, folder in self._kept().items():
            shutil.copytree(folder, self.saved / name)

    def restore(self) -> None:
        """Begin with the state that was kept; nothing runs in it."""
        self.end_panes()
        for name, folder in self._kept().items():
            self._empty(folder)
            shutil.copytree(self.saved / name, folder)
        store = Store(self.root, time.time)
        store.touch()
        store.registry.close()

    def restore_files(self) -> None:
        """Bring root and user state back as they were kept, below the agents that run."""
        for name, folder in self._kept().items():
            if name != "data":
                for path in folder.iterdir():
                    self._empty(path) if path.is_dir() else path.unlink()
                shutil.copytree(self.saved / name, folder, dirs_exist_ok=True)

    def _kept(self) -> dict[str, Path]:
        return {
            "root": self.root,
            "state": Path(os.environ["XDG_STATE_HOME"]),
            "data": Path(os.environ["XDG_DATA_HOME"]),
        }

    def begin_conversations(self) -> None:
        """Put a first line into the transcript of every session, as an agent that was spoken to."""
        for row in self.rows().values():
            for one in row["conversations"]:
                path = Path(row["stores"]["XDG_DATA_HOME"]) / "mam-practice" / f"{one['id']}.jsonl"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text('{"type": "user", "text": "hello", "at": 1}\n', encoding="utf-8")

    def rows(self) -> dict[str, dict]:
        """Return the sessions by name."""
        with mam.open(str(self.root)) as fleet:
            return {row["name"]: row for row in fleet._access.context.registry.view().rows}

    def recorded(self) -> dict[str, dict]:
        """Return the rows of the database by id, without the edits of a person that wait in the file."""
        store = Store(self.root, time.time)
        try:
            return store.rows()
        finally:
            store.registry.close()

    def former_file(self) -> str:
        """Return the text of the former registry file; an empty one without it."""
        path = self.root / ".hermes" / "agent-sessions.yaml.bak"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    # ------------------------------------------------------------ the state after

    def settle(self) -> None:
        """Do what the next changing verb does first."""
        with mam.open(str(self.root)) as fleet:
            settle(fleet)

    def run_next(
        self, next_verb: NextVerb, is_edited: Callable[[], bool], *, is_after_loss: bool = False
    ) -> None:
        """Run the verb that comes after a fault, and check every invariant.

        `is_edited` tells whether a person's edit waits in the file, which only a change takes in. After a
        loss of power no agent runs, and nobody has looked for them yet.
        """
        with mam.open(str(self.root)) as fleet:
            next_verb(fleet, {name: row["status"] for name, row in self.rows().items()})
        if self._is_there() and not is_edited():
            self._check_agreement(has_panes=not is_after_loss)

    def check(self, *, agent_reports: bool = False) -> dict[str, str]:
        """Settle, check every invariant, and return the status of each session by name.

        `agent_reports` means that an agent works on a job: its reports may come between two recoveries.
        """
        self.settle()
        statuses = self._check_agreement()
        if agent_reports:
            self.until(self._is_settled, "I8: every recovery changed something")
        else:
            assert self._is_settled(), "I8: a second recovery changed something"
        return statuses

    def _is_settled(self) -> bool:
        before = self.everything()
        self.settle()
        return self.everything() == before

    def _is_there(self) -> bool:
        """Tell whether there is a registry: a verb that only reads makes none."""
        return bool(self.rows()) or (self.root / ".hermes" / "agent-sessions.yaml").exists()

    def _check_agreement(self, *, has_panes: bool = True) -> dict[str, str]:
        self.until(lambda: not self._strangers(), "a live pane is left without a running session")
        store = Store(self.root, time.time)
        try:
            check_invariants(store)
            with mam.open(str(self.root)) as fleet:
                view = fleet._access.context.registry.view()
                assert not view.intents, f"left in flight: {[(one.name, one.verb) for one in view.intents]}"
                for row in view.rows if has_panes else ():
                    self._check_row(fleet, row)
        finally:
            store.registry.close()
        if has_panes:
            # A launcher that was just started reads its file in a moment.
            launches = self.root / ".mam" / "launch"
            self.until(lambda: not list(launches.glob("*")), "I9: a launch file is left")
        return {row["name"]: row["status"] for row in view.rows}

    def _check_row(self, fleet, row) -> None:
        liveness = check_liveness(fleet._access.context, row)
        if row["status"] == "running":
            assert liveness.state == Liveness.ALIVE, f"{row['name']} is said to run: {liveness.reason}"
            registry = fleet._access.context.registry
            # A member of a team has its pane in the window of the team.
            if registry.peek(lambda transaction: teams.member(transaction, row["id"]), None) is None:
                assert liveness.pane.session_name == row["name"]
        else:
            assert liveness.state in (Liveness.GONE, Liveness.DEAD), (
                f"{row['name']} is {row['status']} and {liveness.state}"
            )
        if row["status"] == "stopped":
            assert liveness.pane is None

    def _strangers(self) -> list[str]:
        """Return live panes of this root whose row does not run; a withdrawn launch needs a moment to go."""
        running = {row["id"] for row in self.rows().values() if row["status"] == "running"}
        listing = self.tmux.panes()
        assert listing.confirmed
        marked = [pane.mark for pane in listing.panes if pane.mark and pane.mark != KEEPER and not pane.dead]
        assert len(marked) == len(set(marked)), "I4: two panes claim one session"
        return [mark for mark in marked if mark not in running]

    def everything(self) -> tuple:
        """Return what no second recovery may change: what is recorded, the leases, and the panes."""
        host = Path(os.environ["MAM_STATE_HOME"]) / "user.db"
        leases = dump_of(host) if host.exists() else []
        panes = sorted((pane.id, pane.mark, pane.dead) for pane in self.tmux.panes().panes)
        return recorded(self.root), leases, panes

    @staticmethod
    def until(condition, what: str, timeout: float = 15.0) -> None:
        """Wait under a deadline."""
        wait_until(condition, what, timeout)
