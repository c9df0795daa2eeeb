"""The resident: how soon a death is in the row, what it costs to be awake, and what one pass costs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import mam as api
from bench.crowd import FLOOD, QUIET, name_of, settle
from bench.measure import Budget, Row, Times, alternate, run, until
from bench.stage import Stage, mam
from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.store.root_paths import of_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SECONDS_OF_REST = 20.0
_APART_SECONDS = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Kill agents one by one; then sit still; then make passes."""
    for count in (5,) if quick else (10, 100, 500):
        tell(f"killing agents among {count} sessions that a resident watches")
        died, gone = deaths(count, 2 if quick else min(count // 2, 40))
        budget = Budget("p95", 50) if count == 100 else None
        yield Row(
            f"death until the row says so, {count} sessions", died, "until the kernel says so", gone, budget
        )
    seconds = 1.0 if quick else _SECONDS_OF_REST
    yield from rest(10 if quick else 200, "quiet sessions", QUIET, seconds, tell)
    yield from rest(2 if quick else 20, "sessions that print 1 MB/s each", FLOOD, seconds, tell)
    yield from passes(quick, tell)


def start(stage: Stage) -> subprocess.Popen[bytes]:
    """Start a resident and wait until it holds its root."""
    running = subprocess.Popen(
        mam("monitor", "--idle-timeout", "0", "--workspace", str(stage.root)),
        env=stage.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    lock = ProcessLock(str(Path(of_root(str(stage.root)).state) / "resident.lock"))
    until(lock.holder, "the resident")
    return running


def stop(running: subprocess.Popen[bytes]) -> None:
    """End it as a service manager does."""
    running.send_signal(signal.SIGTERM)
    until(lambda: running.poll() is not None, "the end of the resident")


def deaths(count: int, killed: int) -> tuple[Times, Times]:
    """Return the times from a kill until the row is terminated, and until the process is gone."""
    row_times, kernel_times = [], []
    with Stage() as stage, api.open(str(stage.root), environ=stage.environ) as fleet:
        settle(stage, count, alive=True).close()
        running = start(stage)
        rows = {row["name"]: row for row in fleet._access.context.registry.view().rows}
        until(partial(_rests, running.pid), "the end of its first pass")
        for number in range(killed + 1):
            name = name_of(number)
            handle = os.pidfd_open(rows[name]["pane"]["pid"])
            began = time.perf_counter()
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            until(partial(_is_gone, handle), "the end of a process")
            gone = time.perf_counter() - began
            until(partial(_is_recorded, fleet, name), f"the row of {name}")
            if number:
                row_times.append((time.perf_counter() - began) * 1000)
                kernel_times.append(gone * 1000)
            os.close(handle)
            # The next one dies on its own, not while the last is still being written down.
            time.sleep(_APART_SECONDS)
        stop(running)
    return Times(tuple(row_times)), Times(tuple(kernel_times))


def _is_recorded(fleet: api.Fleet, name: str) -> bool:
    """Tell whether the row says so; the sessions are read only after somebody has committed."""
    seen = fleet._access.context.registry.commit_number()
    if seen == _seen.get(fleet.root):
        return False
    _seen[fleet.root] = seen
    return name in fleet.sessions.names(status=["terminated"])


_seen: dict[str, int | None] = {}


def _is_gone(handle: int) -> bool:
    import select

    return bool(select.select([handle], [], [], 0)[0])


def rest(count: int, kind: str, program: str, seconds: float, tell: Callable[[str], None]) -> Iterator[Row]:
    """Measure processor time and memory while nothing happens to the sessions, a full pass included."""
    what = f"{count} {kind}"
    tell(f"watching {what} for {seconds:g} s")
    with Stage() as stage:
        settle(stage, count, alive=True, program=program).close()
        running = start(stage)
        until(partial(_rests, running.pid), "the end of its first pass")
        before = _ticks(running.pid)
        time.sleep(seconds)
        used = (_ticks(running.pid) - before) / _TICKS / seconds * 100
        memory = _resident_memory(running.pid)
        stop(running)
    work = Times((max(used * 10, 0.01),))
    yield Row(f"resident, {what}: work in a second", work, "a core", Times((1000.0,)), Budget("times", 0.01))
    yield Row(f"resident, {what}: MB", Times((memory,)), "40 MB", Times((40.0,)), Budget("times", 1))


def _rests(pid: int) -> bool:
    before = _ticks(pid)
    time.sleep(0.5)
    return _ticks(pid) == before


def _ticks(pid: int) -> int:
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return int(fields[11]) + int(fields[12])


def _resident_memory(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def passes(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Measure `mam monitor --once` beside `mam ls` of the same sessions."""
    tell("making passes")
    with ExitStack() as stack:
        acts = {}
        counts = (5,) if quick else (10, 100, 1000)
        for count in counts:
            stage = stack.enter_context(Stage())
            settle(stage, count, alive=True).close()
            for name, words in (("mam monitor --once", ("monitor", "--once")), ("mam ls", ("ls",))):
                command = mam(*words, "--workspace", str(stage.root))
                acts[f"{name}, {count:,} sessions"] = partial(run, command, stage.environ)
        found = alternate(2 if quick else 15, acts)
    for count in counts:
        one, beside = f"mam monitor --once, {count:,} sessions", f"mam ls, {count:,} sessions"
        yield Row(one, found[one], beside, found[beside])
