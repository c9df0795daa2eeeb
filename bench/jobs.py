"""Events of jobs on one machine: how soon a waiter is awake, how many there can be, what one costs."""

from __future__ import annotations

import json
import select
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING

import mam as api
from bench.measure import Budget, Row, Times, alternate, run, until
from bench.stage import PYTHON, Stage, mam
from bench.startup import PASS
from mam.adapters.store.tables import jobs
from mam.adapters.system.file_watch import FileWatch
from mam.app.jobs import ledger_writer
from mam.app.jobs.find import token_of
from mam.app.jobs.new_job import new_id, record_job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.app.api.fleet_object import Fleet

_COMMIT, _TOLD = "one commit", "one commit, until the kernel tells"
_SECONDS = 30.0
_LOOPS = 4


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Record events beside a waiter, then many, then from the shell."""
    with Stage() as stage, api.open(str(stage.root), environ=stage.environ) as fleet:
        fleet.init()
        tell("recording events for somebody who waits")
        yield from _awake(stage, fleet, 3 if quick else 300)
        tell("recording events one after the other")
        yield from _many(fleet, 20 if quick else 2000)
        tell("running mam job event from the shell")
        yield from _shell(stage, fleet, 2 if quick else 40)
        tell("running many mam job event at once beside four busy loops")
        yield from _burst(stage, fleet, 4 if quick else 100)


def _awake(stage: Stage, fleet: Fleet, rounds: int) -> Iterator[Row]:
    job = record_job(fleet._access.context, fleet.caller, new_id(), "measured").id
    waiter = _Waiter(stage, job)
    watch = FileWatch()
    watch.keep({fleet._access.context.paths.state: None})
    try:
        # It has begun to listen once it has heard something.
        until(lambda: waiter.hears(_record(fleet, job), 0.2), "the waiter")
        found = alternate(
            rounds, {"event": partial(_heard, fleet, job, waiter), _TOLD: partial(_told, fleet, watch)}
        )
    finally:
        watch.close()
        waiter.close()
    yield Row(
        "event recorded until job wait has printed it", found["event"], _TOLD, found[_TOLD], Budget("ms", 5)
    )


class _Waiter:
    """A `mam job wait` of its own, and what it printed last."""

    def __init__(self, stage: Stage, job: str) -> None:
        self._process = subprocess.Popen(
            mam("job", "wait", job, "--json", "--workspace", str(stage.root)),
            env=stage.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        self._rest = b""

    def hears(self, seq: int, seconds: float = _SECONDS) -> bool:
        """Tell whether it printed the event of this number in time."""
        deadline = time.perf_counter() + seconds
        while (left := deadline - time.perf_counter()) > 0 and select.select([self._pipe], [], [], left)[0]:
            *lines, self._rest = (self._rest + self._pipe.read(65536)).split(b"\n")
            if any(json.loads(one)["seq"] == seq for one in lines):
                return True
        return False

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._pipe.close()


def _record(fleet: Fleet, job: str) -> int:
    """Record an event; return its number."""
    token = token_of(fleet._access.context, job)
    done = fleet._access.context.registry.note(
        lambda draft: ledger_writer.report(draft, jobs.find(draft, job), "progress", token, "x", data={})
    )
    return int(done.last_seq)


def _heard(fleet: Fleet, job: str, waiter: _Waiter) -> float:
    seq = _record(fleet, job)
    recorded = time.perf_counter()
    if not waiter.hears(seq):
        raise RuntimeError("the waiter heard nothing")
    return time.perf_counter() - recorded


def _told(fleet: Fleet, watch: FileWatch) -> float:
    """Return how long a bare commit takes until the kernel has told of it."""
    watch.poll()
    began = time.perf_counter()
    fleet._access.context.registry.note(lambda draft: draft.set_meta("bench", 1))
    select.select([watch], [], [], _SECONDS)
    return time.perf_counter() - began


def _many(fleet: Fleet, count: int) -> Iterator[Row]:
    job = record_job(fleet._access.context, fleet.caller, new_id(), "measured").id
    began = time.perf_counter()
    for _ in range(count):
        fleet.jobs.event(job, "progress", detail="x")
    each = Times(((time.perf_counter() - began) * 1000 / count,))
    began = time.perf_counter()
    for number in range(count):
        fleet._access.context.registry.note(lambda draft, number=number: draft.set_meta("bench", number))
    bare = Times(((time.perf_counter() - began) * 1000 / count,))
    kept = len(fleet.jobs.logs(job)["events"])
    if kept != count + 1:
        raise RuntimeError(f"{kept} entries instead of {count + 1}")
    yield Row(f"{count:,} events with their files, each", each, _COMMIT, bare)


def _shell(stage: Stage, fleet: Fleet, rounds: int) -> Iterator[Row]:
    job = record_job(fleet._access.context, fleet.caller, new_id(), "measured").id
    words = ("--job", job, "--event", "progress", "--detail", "x", "--workspace", str(stage.root))
    found = alternate(
        rounds,
        {
            PASS: partial(run, [PYTHON, "-c", "pass"], stage.environ),
            "event": partial(run, mam("job", "event", *words), stage.environ),
        },
    )
    yield Row("mam job event", found["event"], PASS, found[PASS])


def _burst(stage: Stage, fleet: Fleet, count: int) -> Iterator[Row]:
    """Run many commands at once on a busy machine: each one must record its event."""
    job = record_job(fleet._access.context, fleet.caller, new_id(), "measured").id
    words = ("--job", job, "--event", "progress", "--detail", "x", "--workspace", str(stage.root))
    loops = [subprocess.Popen([PYTHON, "-c", "while True: pass"]) for _ in range(_LOOPS)]
    try:
        bare = Times((_at_once(stage, [PYTHON, "-c", "pass"], count),))
        events = Times((_at_once(stage, mam("job", "event", *words), count),))
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    kept = len(fleet.jobs.logs(job)["events"])
    if kept != count + 1:
        raise RuntimeError(f"{kept - 1} of {count} events were recorded")
    yield Row(f"{count} mam job event at once beside {_LOOPS} busy loops", events, PASS, bare)


def _at_once(stage: Stage, command: list[str], count: int) -> float:
    """Run a command so many times at once; return the milliseconds until all have ended with 0."""
    began = time.perf_counter()
    quiet = subprocess.DEVNULL
    started = [subprocess.Popen(command, env=stage.environ, stdin=quiet, stdout=quiet) for _ in range(count)]
    failed = sum(process.wait() != 0 for process in started)
    if failed:
        raise RuntimeError(f"{failed} of {count} did not end with 0: {' '.join(command[:4])}")
    return (time.perf_counter() - began) * 1000
