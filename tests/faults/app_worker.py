"""Long-lived processes that use the API of a root, each with a fault armed and a clock to be set.

Run with the shim preloaded: python -m tests.faults.app_worker SOCKET. It forks one process for each
connection. A connection takes requests as lines of JSON, one after the other, and keeps its fleet open
between them. The first answer is the pid. Whoever made the connection finds it closed if the process was
killed.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

_real_time = time.time
# Since when, on the clock of the machine, which time of day it is, and how fast it goes on.
PIECES: list[tuple[float, float, float]] = [(0.0, 0.0, 1.0)]


def at_time_of_day(machine: float) -> float:
    """Return what the clock that is set shows at a time of the machine's clock."""
    since, shown, rate = next((piece for piece in reversed(PIECES) if piece[0] <= machine), PIECES[0])
    return shown + (machine - since) * rate


def _now() -> float:
    return at_time_of_day(_real_time())


# Before mam is imported: many of its functions have the clock as a default.
time.time = _now
time.time_ns = lambda: int(_now() * 1e9)

from tests.faults.server import library, load_everything  # noqa: E402
from tests.settling import settle  # noqa: E402

import mam  # noqa: E402
from mam.core.errors import MamError  # noqa: E402


class _DatedFiles:
    """The module `os`, which dates files by the clock that is set: the kernel's own clock stays."""

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    @staticmethod
    def stat(path: str, *, follow_symlinks: bool = True) -> object:
        facts = Path(path).stat(follow_symlinks=follow_symlinks)
        return SimpleNamespace(
            st_mode=facts.st_mode, st_size=facts.st_size, st_mtime=at_time_of_day(facts.st_mtime)
        )


def date_what_agents_write() -> None:
    """Date what agents write by the clock that is set, as on a machine whose clock was set."""
    from mam.adapters.agents.practice import Practice
    from mam.adapters.store.files import hook_spool
    from mam.core import drift_detection

    hook_spool.os = _DatedFiles()
    read = Practice.read_transcript_evidence

    def read_dated(self: Practice, *arguments: object) -> list:
        evidence = read(self, *arguments)
        for one in evidence:
            one.at = at_time_of_day(one.at)
        return evidence

    Practice.read_transcript_evidence = read_dated
    # A pass decides at once.
    drift_detection.HANDS_OFF_SECONDS = -10.0


def tick(fleet: mam.Fleet) -> None:
    """Do once what the resident does for messages, sessions and jobs."""
    from mam.app.job_runner.waiter_task import WaiterTask

    fleet._access.settle()
    WaiterTask(fleet._access.context, fleet.caller).tick()


OTHERS = {"settle": settle, "tick": tick}


def plain(value: object) -> object:
    """Return a result of the API as JSON takes it."""
    if isinstance(value, list):
        return [plain(one) for one in value]
    if hasattr(value, "changed"):
        return {"row": value.session.row, "changed": value.changed, "note": value.note}
    return value.row if hasattr(value, "row") else value


class Worker:
    """One process with an open fleet."""

    def __init__(self, shim) -> None:
        self.shim = shim
        self.fleet: mam.Fleet | None = None
        self.warnings: list[str] = []

    def answer(self, request: dict) -> dict:
        """Run one verb; say how it ended, and how many calls changed a file."""
        PIECES[:] = [tuple(piece) for piece in request["clock"]]
        if self.fleet is None:
            self.fleet = mam.open(request["root"])
            self.fleet.on_warning(self.warnings.append)
        self.warnings.clear()
        shim, answer = self.shim, {"value": None, "error": None}
        shim.fault_arm(
            "\n".join(request["folders"]).encode(), request["n"], request["mode"], request["errno"]
        )
        try:
            answer["value"] = plain(self._verb(request["verb"])(*request["words"], **request["options"]))
        except MamError as error:
            answer["error"] = {"code": error.code, "message": str(error)}
        except Exception:
            answer["error"] = {"code": "traceback", "message": traceback.format_exc()}
        shim.fault_disarm()
        return {**answer, "warnings": list(self.warnings), "calls": shim.fault_count()}

    def _verb(self, name: str):
        if name in OTHERS:
            return lambda: OTHERS[name](self.fleet)
        group, _, verb = name.partition(".")
        return getattr(getattr(self.fleet, group), verb)


def serve(path: str) -> None:
    """Fork a worker for each connection, until the input ends."""
    load_everything()
    date_what_agents_write()
    shim = library()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        print("ready", flush=True)
        while True:
            if sys.stdin in select.select([listening, sys.stdin], [], [])[0]:
                # Nobody writes: whoever started this process has closed its input, or has ended.
                return
            connection, _ = listening.accept()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            if os.fork():  # noqa: TID251  (one process for each connection is the point)
                connection.close()
                continue
            listening.close()
            with Path(os.devnull).open("rb") as nothing:
                os.dup2(nothing.fileno(), sys.stdin.fileno())
            with connection, connection.makefile("rw", encoding="utf-8") as lines:
                print(os.getpid(), file=lines, flush=True)
                worker = Worker(shim)
                for line in lines:
                    lines.write(json.dumps(worker.answer(json.loads(line)), default=str) + "\n")
                    lines.flush()
            os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
