"""Many sessions under load for some minutes: messages through the API, events over MQTT, lists and passes.

Nothing may be lost or doubled, and the resident stays as it is after its warm-up: the first quarter of the
run. How long a list or a pass takes is shown beside `python -c pass` of the same moments, and not judged.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import mam as api
from bench.measure import Times, alternate, run, until
from bench.resident import start, stop
from bench.soak.broker_stage import BrokerStage, connection, new_job, refusals_of, seqs_of, signed
from bench.soak.report import Line, exactly, growth_lines, size_lines
from bench.soak.samples import MB, Sampler, memory_of, work_of
from bench.stage import PYTHON, mam
from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.load_adjusted_clock import stretched

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.app.api.fleet_object import Fleet

FEW = 10
_THREADS, _JOBS = 4, 10
# Seconds between lists and passes under load; seconds of a quiet machine in which the ledger has to move.
_APART, _STANDSTILL = 3.0, 5.0
# Events with the number 1 show that the resident listens.
_FIRST = 2
_PROVEN = "submitted"
# A row of the ledger and one of the outbox, with their indexes.
_BYTES_OF_EVENT = 4096
_REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Amount:
    """How much load there is."""

    sessions: int = 500
    seconds: float = 120.0
    messages: float = 20.0
    events: float = 500.0

    @property
    def rounds(self) -> int:
        """How often lists and passes are measured at rest."""
        return max(2, min(10, int(self.seconds / 6)))

    @property
    def burst(self) -> int:
        """The events of ten seconds, published while the broker is down."""
        return int(10 * self.events)


def load(amount: Amount, tell: Callable[[str], None]) -> list[Line]:
    """Run the load; return the table."""
    with ExitStack() as stack:
        stage = stack.enter_context(BrokerStage())
        fleet = stack.enter_context(api.open(str(stage.root), environ=stage.environ))
        fleet.init()
        resident = start(stage)
        stack.callback(stop, resident)
        return _Load(stage, fleet, resident.pid, amount, tell).run()


class _Load:
    """One run: the stage is prepared, measured at rest, loaded, and counted."""

    def __init__(
        self, stage: BrokerStage, fleet: Fleet, resident: int, amount: Amount, tell: Callable[[str], None]
    ) -> None:
        self.stage, self.fleet, self.resident = stage, fleet, resident
        self.amount, self.tell = amount, tell
        self.lines: list[Line] = []
        self.received: list[list[Any]] = []

    def run(self) -> list[Line]:
        """Return the lines of the table."""
        few = min(FEW, self.amount.sessions)
        self._create(0, few)
        at_rest = {few: self._look()}
        if few < self.amount.sessions:
            self._create(few, self.amount.sessions)
            at_rest[self.amount.sessions] = self._look()
        jobs = [new_job(self.fleet) for _ in range(_JOBS)]
        until(lambda: self._is_heard(jobs), "a resident that listens")
        self.tell(f"loading for {self.amount.seconds:g} s")
        with Sampler(self.stage) as sampler:
            under_load = self._load(jobs)
            steady = list(sampler.samples)
            self._wait_for_events(jobs, "steady")
            self.tell("publishing a burst to a broker that is down")
            self._burst(jobs)
        self._note_looks(at_rest, under_load)
        self._check_messages()
        self._check_events(jobs)
        self.lines += growth_lines("resident", steady)
        events = int(self.amount.events * self.amount.seconds) + self.amount.burst
        self.lines += size_lines(sampler.largest, 16 * MB + _BYTES_OF_EVENT * events)
        return self.lines

    def _create(self, first: int, last: int) -> None:
        self.tell(f"starting sessions {first + 1} to {last}")
        began = time.monotonic()

        create_sessions(self.fleet, [f"load-{number}" for number in range(first, last)])
        until(self._all_idle, "agents that are ready", seconds=300)
        seconds = time.monotonic() - began
        self.lines.append(Line(f"start {last - first} sessions", f"{seconds:.1f} s"))
        pids = [session.row["pane"]["pid"] for session in self.fleet.sessions.list()]
        each = memory_of(pids[:: max(1, len(pids) // 20)])
        self.lines.append(Line(f"memory of {last} agents", f"{last * each / MB:,.0f} MB"))

    def _all_idle(self) -> bool:
        time.sleep(0.2)
        return all(row["activity"] == "idle" for row in self.fleet.sessions.ls()["sessions"])

    def _acts(self) -> dict[str, Callable[[], None]]:
        root = ("--workspace", str(self.stage.root))
        return {
            "python -c pass": partial(run, [PYTHON, "-c", "pass"], self.stage.environ),
            "mam ls": partial(run, mam("ls", *root), self.stage.environ),
            "mam monitor --once": partial(run, mam("monitor", "--once", *root), self.stage.environ),
        }

    def _look(self) -> dict[str, Times]:
        return alternate(self.amount.rounds, self._acts())

    def _load(self, jobs: Sequence[str]) -> dict[str, Times]:
        amount = self.amount
        events = int(amount.events * amount.seconds)
        sender = self._helper("sender", amount.messages, amount.seconds)
        publisher = self._helper("publisher", amount.events, events, _FIRST, *jobs)
        before, began = work_of(self.resident), time.monotonic()
        _begin(sender, publisher)
        found: dict[str, list[float]] = {name: [] for name in self._acts()}
        while time.monotonic() - began < amount.seconds:
            for name, act in self._acts().items():
                at = time.perf_counter()
                act()
                found[name].append((time.perf_counter() - at) * 1000)
            time.sleep(_APART)
        self.received = [json.loads(line) for line in _end(sender).splitlines()]
        seconds = float(_end(publisher))
        took = time.monotonic() - began
        work = work_of(self.resident) - before
        self.lines += [
            Line("messages through the API", f"{len(self.received) / self._last_ended():.1f} a second", "-"),
            Line("events over MQTT", f"{events / seconds:.0f} a second", "-"),
            Line("work of the resident under load", f"{100 * work / took:.0f} % of a core"),
        ]
        return {name: Times(tuple(values)) for name, values in found.items()}

    def _last_ended(self) -> float:
        return max((one[4] for one in self.received), default=1.0)

    def _helper(self, module: str, *words: object) -> subprocess.Popen[str]:
        helper = subprocess.Popen(
            [sys.executable, "-m", f"bench.soak.{module}", str(self.stage.root), *map(str, words)],
            cwd=_REPOSITORY,
            env=self.stage.environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert helper.stdout is not None
        if helper.stdout.readline() != "ready\n":
            raise RuntimeError(f"the {module} does not begin")
        return helper

    def _burst(self, jobs: Sequence[str]) -> None:
        """Publish events while the broker is down; it comes back, and has them before the resident is there.

        So a part of them reaches nobody, and the sender has to repeat what it does not see taken in.
        """
        first = int(self.amount.events * self.amount.seconds) // len(jobs) + _FIRST
        publisher = self._helper("publisher", 0, self.amount.burst, first, *jobs)
        self.stage.mosquitto.kill()
        began = time.monotonic()
        _begin(publisher)
        self.stage.mosquitto.start()
        _end(publisher)
        self._wait_for_events(jobs, "burst")
        self.lines.append(Line("burst until taken in", f"{time.monotonic() - began:.1f} s"))

    def _wanted(self, jobs: Sequence[str], *, with_burst: bool) -> int:
        steady = int(self.amount.events * self.amount.seconds) // len(jobs)
        return _FIRST - 1 + steady + (self.amount.burst // len(jobs) if with_burst else 0)

    def _is_heard(self, jobs: Sequence[str]) -> bool:
        """Publish the first event of each job where it is missing; tell whether none is."""
        missing = {job: {1} for job in jobs if not seqs_of(self.fleet, job)}
        self._publish(missing)
        time.sleep(0.2)
        return not missing

    def _wait_for_events(self, jobs: Sequence[str], phase: str) -> None:
        """Wait until the ledger has them all; publish again, as their sender would, what does not come."""
        wanted, again = self._wanted(jobs, with_burst=phase == "burst"), 0
        newest, moved = -1, load_adjusted_clock.now()
        while True:
            missing = {job: set(range(1, wanted + 1)) - set(seqs_of(self.fleet, job)) for job in jobs}
            left = sum(map(len, missing.values()))
            if left == 0:
                break
            if left != newest:
                newest, moved = left, load_adjusted_clock.now()
            elif load_adjusted_clock.now() - moved > _STANDSTILL:
                if again:
                    break
                again = left
                self._publish(missing)
                moved = load_adjusted_clock.now()
            time.sleep(0.5)
        bound = "-" if phase == "burst" else "0"
        self.lines.append(
            Line(f"events published a second time ({phase})", f"{again:,}", bound, bound == "-" or not again)
        )

    def _publish(self, missing: dict[str, set[int]]) -> None:
        link = connection(self.fleet, "again")
        link.open(stretched(20))
        sent = [
            link.publish(link.broker.topic(job, "events"), signed(self.fleet, job, seq))
            for job, seqs in missing.items()
            for seq in sorted(seqs)
        ]
        link.finish(sent, stretched(60))
        link.close()

    # ------------------------------------------------------------ what became of it

    def _note_looks(self, at_rest: dict[int, dict[str, Times]], under_load: dict[str, Times]) -> None:
        few = min(at_rest)
        looks = [(f"{count} sessions", found) for count, found in at_rest.items()]
        for when, found in [*looks, (f"{self.amount.sessions} sessions, under load", under_load)]:
            for name, times in found.items():
                ratio = times.median / found["python -c pass"].median
                beside = times.median / at_rest[few][name].median
                shown = f"p50 {times.median:.0f} ms, p95 {times.p95:.0f} ms, {ratio:.1f} x python -c pass"
                self.lines.append(Line(f"{name}, {when}", f"{shown}, {beside:.1f} x {few} at rest"))

    def _check_messages(self) -> None:
        wanted = int(self.amount.messages * self.amount.seconds)
        ends = Counter(one[2] for one in self.received)
        for state in set(ends) - {_PROVEN}:
            self.tell(f"{ends[state]} x {state}")
        self.lines.append(exactly("messages submitted", ends[_PROVEN], wanted))
        times = Times(tuple(one[3] * 1000 for one in self.received))
        self.lines.append(Line("send until proven", f"p50 {times.median:.0f} ms, p95 {times.p95:.0f} ms"))
        sent = Counter((session, text) for session, text, *_ in self.received)
        # An agent that is slow may have a message in its own queue, and mam may still hold one.
        proven = Counter((session, text) for session, text, state, *_ in self.received if state == _PROVEN)
        taken = Counter(
            (session.id, text) for session in self.fleet.sessions.list() for text in taken_texts(session.row)
        )
        self.lines.append(exactly("messages lost", sum((proven - taken).values()), 0))
        self.lines.append(exactly("messages doubled or strange", sum((taken - sent).values()), 0))

    def _check_events(self, jobs: Sequence[str]) -> None:
        wanted = self._wanted(jobs, with_burst=True)
        found = {job: seqs_of(self.fleet, job) for job in jobs}
        lost = sum(len(set(range(1, wanted + 1)) - set(seqs)) for seqs in found.values())
        doubled = sum(len(seqs) - len(set(seqs)) for seqs in found.values())
        self.lines.append(exactly("events taken in", sum(map(len, found.values())), wanted * len(jobs)))
        self.lines.append(exactly("events lost", lost, 0))
        self.lines.append(exactly("events doubled", doubled, 0))
        self.lines.append(exactly("events refused", sum(refusals_of(self.fleet, job) for job in jobs), 0))


def create_sessions(fleet: Fleet, names: Sequence[str], **options: Any) -> None:
    """Start practice agents with these names, some at a time."""

    def create(own: Fleet, some: Sequence[str]) -> None:
        with own:
            for name in some:
                own.sessions.create("practice", name=name, args=["--speed", "0"], wait=False, **options)

    with ThreadPoolExecutor(_THREADS) as pool:
        list(
            pool.map(
                create,
                [fleet.for_thread() for _ in range(_THREADS)],
                [names[at::_THREADS] for at in range(_THREADS)],
            )
        )


def taken_texts(row: Any) -> list[str]:
    """Return what the practice agent of a session took, by its own record."""
    folder = Path(row["stores"]["XDG_DATA_HOME"]) / "mam-practice"
    texts = []
    for conversation in row["conversations"]:
        try:
            lines = (folder / f"{conversation['id']}.jsonl").read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            continue
        entries = [json.loads(line) for line in lines if line]
        texts += [entry["text"] for entry in entries if entry.get("type") == "user"]
    return texts


def _begin(*helpers: subprocess.Popen[str]) -> None:
    for helper in helpers:
        assert helper.stdin is not None
        helper.stdin.close()


def _end(helper: subprocess.Popen[str]) -> str:
    assert helper.stdout is not None
    with helper.stdout as out:
        text = out.read()
    if helper.wait() != 0:
        raise RuntimeError(f"exit status {helper.returncode}: {helper.args}")
    return text
