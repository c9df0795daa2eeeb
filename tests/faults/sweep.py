"""Kills a verb before each of its durable system calls, and looks at what the next verb makes of it.

Run as a program with the shim preloaded: `sweep.py SCENARIO MODE`. Everything is imported once; each case
is a fork that arms the shim and runs the verb. Prints one JSON object at the end.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

os.environ.pop("LD_PRELOAD", None)

import mam
from mam.adapters.store import document
from mam.adapters.tmux.client import Tmux
from mam.app.recover import recover
from mam.app.settle import settle
from mam.app.sight import ALIVE, see_one
from mam.core.errors import MamError
from mam.core.row import STATUSES, is_running

MODES = {"count": 0, "kill-before": 1, "kill-after": 2, "ENOSPC": 3, "EIO": 3}
KILLED = -signal.SIGKILL
QUICK = ["--speed", "0"]
DEADLINE = 10.0
_shim = ctypes.CDLL(None)


class Broken(Exception):
    """An invariant does not hold."""


class Case:
    """One root, in a place of its own, with a keeper session that no verb under test touches."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.root = place / "root"
        self.root.mkdir(parents=True)
        os.environ["XDG_STATE_HOME"] = str(place / "state")

    def open(self):
        return mam.open(str(self.root))

    def folders(self) -> str:
        return f"{self.root}:{self.place / 'state'}"


class Create:
    """A new session with a real agent in it."""

    def prepare(self, fleet) -> None:
        return

    def act(self, fleet) -> None:
        fleet.create("practice", name="subject", args=QUICK, wait=False)

    def check(self, fleet, finished: bool) -> None:
        names = fleet.names(status=["running"])
        if finished and "subject" not in names:
            raise Broken("a create that was acknowledged is lost")


class Stop:
    """A running program is told to leave."""

    def prepare(self, fleet) -> None:
        fleet.create("sleep", name="subject", args=["1000"], wait=False)

    def act(self, fleet) -> None:
        fleet.stop("subject", reason="sweep")

    def check(self, fleet, finished: bool) -> None:
        row = fleet.get("subject").row
        if finished and (row["status"], row["stop_reason"]) != ("stopped", "sweep"):
            raise Broken("a stop that was acknowledged is lost")


class Resume:
    """A stopped session goes on."""

    def prepare(self, fleet) -> None:
        fleet.create("practice", name="subject", args=QUICK, wait=False)
        fleet.stop("subject", force=True)

    def act(self, fleet) -> None:
        fleet.resume("subject", wait=False)

    def check(self, fleet, finished: bool) -> None:
        row = fleet.get("subject").row
        if not row["conversations"]:
            raise Broken("the conversation's id is lost")
        if finished and row["status"] != "running":
            raise Broken("a resume that was acknowledged is lost")


class Purge(Stop):
    """A conversation is deleted with its session."""

    def prepare(self, fleet) -> None:
        fleet.create("practice", name="subject", args=QUICK, prompt="hello")

    def act(self, fleet) -> None:
        fleet.stop("subject", purge_conversation=True)

    def check(self, fleet, finished: bool) -> None:
        row = fleet.get("subject").row
        if finished and (row["status"], row["resumable"]) != ("terminated", False):
            raise Broken("a purge that was acknowledged is lost")


class Rename:
    """A session gets another name, in the registry and in tmux."""

    def prepare(self, fleet) -> None:
        fleet.create("sleep", name="subject", args=["1000"], wait=False)

    def act(self, fleet) -> None:
        fleet.rename("subject", "renamed")

    def check(self, fleet, finished: bool) -> None:
        (name,) = fleet.names(status=["running"])
        shown = [pane.session_name for pane in panes_of(fleet)]
        if shown != [name]:
            raise Broken(f"the row is named {name}, tmux shows {shown}")
        if finished and name != "renamed":
            raise Broken("a rename that was acknowledged is lost")


class Edit:
    """A person's edit is taken in."""

    def prepare(self, fleet) -> None:
        file = Path(fleet.registry_file)
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace("role: null", "role: by hand"), encoding="utf-8")

    def act(self, fleet) -> None:
        fleet.archive("keeper")

    def check(self, fleet, finished: bool) -> None:
        row = fleet.sessions()[0].row
        if row["role"] != "by hand" or "role: by hand" not in Path(fleet.registry_file).read_text(
            encoding="utf-8"
        ):
            raise Broken("the edit is lost")
        if finished and row["status"] != "archived":
            raise Broken("an archive that was acknowledged is lost")


SCENARIOS = {
    "create": Create(),
    "stop": Stop(),
    "resume": Resume(),
    "purge": Purge(),
    "rename": Rename(),
    "edit": Edit(),
}


def panes_of(fleet) -> list:
    server = os.environ["TMUX_SERVER_NAME"]
    return [pane for pane in Tmux(server).panes().panes if pane.root == fleet.root]


def keep(fleet) -> None:
    """Register an ended session that gives the next verb something to do."""
    row = {
        "id": "s_0000000e", "name": "keeper", "agent": "sleep", "status": "stopped", "workspace": fleet.root,
        "tmux_server": os.environ["TMUX_SERVER_NAME"], "start_command": ["sleep", "1"],
        "last_action": {"by": "user", "verb": "create", "at_epoch": 1},
    }  # fmt: skip
    fleet.world.registry.change(lambda draft: draft.add(row))


def run_child(case: Case, scenario, mode: str, at: int) -> tuple[int, int]:
    """Run the verb in a child; return its exit code (negative: signal) and how many calls it counted."""
    reading, writing = os.pipe()
    pid = os.fork()  # noqa: TID251
    if pid == 0:
        code = 70
        try:
            failure = getattr(errno, mode, 0)
            _shim.shim_arm(case.folders().encode(), MODES[mode], ctypes.c_long(at), failure)
            with case.open() as fleet:
                scenario.act(fleet)
            code = 0
        except MamError as error:
            code = error.exit_code
        except BaseException:
            traceback.print_exc()
        _shim.shim_calls.restype = ctypes.c_long
        os.write(writing, str(_shim.shim_calls()).encode())
        os._exit(code)
    os.close(writing)
    said = b""
    while chunk := os.read(reading, 64):
        said += chunk
    os.close(reading)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), int(said or b"0")


def look(case: Case, scenario, code: int) -> None:
    """Run the next changing verb, then hold everything against the invariants."""
    with case.open() as fleet:
        fleet.rename("s_0000000e", "kept")
        deadline = time.monotonic() + DEADLINE
        while True:
            try:
                agree(fleet)
                scenario.check(fleet, code == 0)
                break
            except Broken:
                # A tmux client that outlived its caller may still be on its way.
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        before = Path(fleet.registry_file).read_bytes()
        settle(fleet.world)
        recover(fleet.world)
        if Path(fleet.registry_file).read_bytes() != before:
            raise Broken("recovering a second time changed something")


def agree(fleet) -> None:
    """Registry, YAML and tmux say the same, and nothing is left lying about."""
    rows = fleet.world.registry.view().rows
    if fleet.world.registry.view().intents:
        raise Broken("an intent is left")
    shown = document.read(Path(fleet.registry_file).read_bytes(), fleet.registry_file)
    if shown is None or shown.rows != rows:
        raise Broken("the file does not show what is committed")
    running = {row["id"]: row for row in rows if is_running(row)}
    for row in rows:
        if row["status"] not in STATUSES:
            raise Broken(f"impossible status {row['status']}")
    for row in running.values():
        sight = see_one(fleet.world, row)
        if sight.state != ALIVE:
            raise Broken(f"{row['name']} is held for running and is {sight.state}: {sight.reason}")
    for pane in panes_of(fleet):
        if pane.mark not in running:
            raise Broken(f"pane {pane.id} ({pane.session_name}) has no running row")
    folder = Path(fleet.registry_file).parent
    stray = [path.name for path in folder.iterdir() if path.name.endswith(".tmp")]
    if stray:
        raise Broken(f"temporary files are left: {stray}")


def clean(case: Case) -> None:
    server = Tmux(os.environ["TMUX_SERVER_NAME"])
    for pane in server.panes().panes:
        if pane.root == str(case.root):
            server.kill_pane(pane.id, mark=None)
    shutil.rmtree(case.place, ignore_errors=True)


def one(place: Path, scenario, mode: str, at: int) -> tuple[int, int, str | None]:
    """Run one case; return exit code, number of calls, and what is broken."""
    case = Case(place)
    try:
        with case.open() as fleet:
            keep(fleet)
            scenario.prepare(fleet)
        code, calls = run_child(case, scenario, mode, at)
        try:
            look(case, scenario, code)
        except (Broken, MamError) as error:
            return code, calls, f"{type(error).__name__}: {error}"
        return code, calls, None
    finally:
        clean(case)


def main(name: str, mode: str, step: int = 1) -> None:
    """Count the calls, then run a case for each (or each step-th) of them."""
    scenario = SCENARIOS[name]
    place = Path(tempfile.mkdtemp(prefix="sweep-", dir=os.environ["SWEEP_DIR"]))
    began = time.monotonic()
    _, calls, broken = one(place / "count", scenario, "count", 0)
    found = {"scenario": name, "mode": mode, "calls": calls, "cases": 0, "killed": 0, "broken": []}
    if broken:
        found["broken"].append([0, broken])
    for at in range(1, calls + 1, step):
        code, _, broken = one(place / str(at), scenario, mode, at)
        found["cases"] += 1
        found["killed"] += code == KILLED
        if broken or code == 70:
            found["broken"].append([at, broken or "a bug of ours"])
    found["seconds"] = round(time.monotonic() - began, 1)
    shutil.rmtree(place, ignore_errors=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 1)
