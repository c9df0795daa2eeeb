"""The soak: clients work, every few seconds something breaks, and once a minute everything is checked.

For a check the clients pause and what is broken is mended; then what they were told must hold, and what is
there must agree. At the end no resident runs any more, and a second recovery changes nothing.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING

from tests.settling import recorded, settle

from bench.measure import until
from bench.soak import invariants
from bench.soak.faults import FAULTS, fill_disk
from bench.soak.report import (
    Line,
    exactly,
    fault_lines,
    growth_lines,
    operation_lines,
    size_lines,
)
from bench.soak.samples import MB, Sampler, resident_pid
from bench.soak.soaked_root import SoakedRoot
from mam.adapters.system import load_adjusted_clock
from mam.core.errors import MamError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.soak.faults import Fault
    from bench.soak.interrupt import Interrupt
    from bench.soak.samples import Sample

_CLIENTS = 3
_CHECK_SECONDS = 60.0
_REST_SECONDS = 90.0
_HIT_SECONDS = 60.0
# A resident that lived for so long is looked at for growth.
_LONG_LIFE = 120.0
_MOST_DATABASE = 128 * MB
# What a resident has at most: some descriptors for each session, and threads for messages and jobs.
_DESCRIPTORS, _DESCRIPTORS_OF_SESSION, _THREADS = 64, 3, 24


@dataclass(frozen=True)
class Plan:
    """How long, how often and with what; `faults` ends it by their number, one of each kind first."""

    seed: int
    seconds: float = 1200.0
    every: float = 5.0
    sessions: int = 50
    faults: int | None = None


@dataclass
class Outcome:
    """What a soak found."""

    lines: list[Line] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)


def soak(plan: Plan, interrupt: Interrupt, tell: Callable[[str], None]) -> Outcome:
    """Run the soak."""
    tell(f"seed {plan.seed}: starting {plan.sessions} sessions")
    with (
        SoakedRoot(plan.sessions, min(_CLIENTS, plan.sessions), plan.seed, plan.every) as soaked,
        Sampler(soaked.stage) as sampler,
    ):
        if not soaked.has_small_disk:
            tell("no full disk: only root may mount a small file system")
        return _Soak(plan, soaked, sampler, interrupt, tell).run()


class _Soak:
    def __init__(
        self,
        plan: Plan,
        soaked: SoakedRoot,
        sampler: Sampler,
        interrupt: Interrupt,
        tell: Callable[[str], None],
    ) -> None:
        self.plan, self.soaked, self.sampler = plan, soaked, sampler
        self.interrupt, self.tell = interrupt, tell
        self.chance = random.Random(plan.seed)
        # How often each fault hit something, and how often it found nothing or was refused.
        self.applied: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.tried: set[str] = set()
        self.turns = 0
        self.recent: list[str] = []
        self.outcome = Outcome()
        self._faults = {
            fault: weight
            for fault, weight in FAULTS.items()
            if fault is not fill_disk or soaked.has_small_disk
        }
        self._first = self.chance.sample(list(self._faults), len(self._faults))

    def run(self) -> Outcome:
        """Break things until the time is over; check once a minute and at the end."""
        began = time.monotonic()
        next_fault, next_check = began + self.plan.every, began + _CHECK_SECONDS
        while not self._is_over(began):
            self.interrupt.sleep_until(next_fault)
            next_fault = max(next_fault + self.plan.every, time.monotonic())
            self._break()
            self.turns += 1
            if time.monotonic() >= next_check:
                self._check()
                self.soaked.clients.go_on()
                self.soaked.reporter.go_on()
                next_check += _CHECK_SECONDS
        self._check()
        self._check_second_recovery()
        self._summarise()
        return self.outcome

    def _is_over(self, began: float) -> bool:
        if self.plan.faults is not None:
            return self.turns >= self.plan.faults
        return time.monotonic() - began >= self.plan.seconds

    def _break(self) -> None:
        """Apply one fault: first one of each kind, until it hits something; then whichever chance takes."""
        if not self._first:
            self._apply(self._choose())
            return
        fault = self._first.pop()
        # A resident that was killed, or a session that has ended, is there again after some calls of clients.
        deadline = load_adjusted_clock.now() + _HIT_SECONDS
        while not self._apply(fault) and load_adjusted_clock.now() < deadline:
            self.interrupt.sleep_until(time.monotonic() + 0.1)

    def _apply(self, fault: Fault) -> bool:
        """Apply a fault; tell whether it has hit something."""
        self.interrupt.heed()
        self.tried.add(fault.__name__)
        at = time.time()
        try:
            hit = fault(self.soaked, self.chance)
        except MamError:
            # tmux or the database refuses it at the moment.
            self.missed[f"{fault.__name__} (refused)"] += 1
            return False
        if hit is None:
            self.missed[f"{fault.__name__} (nothing there)"] += 1
            return False
        self.applied[fault.__name__] += 1
        self.recent = [*self.recent[-11:], f"{at:.3f} {fault.__name__}: {hit}"]
        return True

    def _choose(self) -> Fault:
        return self.chance.choices(list(self._faults), list(self._faults.values()))[0]

    # ------------------------------------------------------------ checks

    def _check(self) -> None:
        """Bring everything to rest, and see what holds."""
        self._wait_for_a_report()
        self.soaked.clients.pause()
        self.soaked.reporter.pause()
        self._wait_for_rest()
        for text in invariants.violations(self.soaked):
            self._note(text)
        history = self.soaked.history.calls
        failed = sum(call.outcome not in ("done", "killed") for call in history)
        self.tell(
            f"{self.applied.total()} faults, {len(history)} operations, {failed} refused or failed, "
            f"{len(self.outcome.violations)} violations"
        )

    def _wait_for_a_report(self) -> None:
        """Nothing is broken at the moment, so the remote reporter publishes."""
        before = self.soaked.reporter.count()
        try:
            until(lambda: self.soaked.reporter.has_published_more(before), "an event of the remote reporter")
        except RuntimeError as error:
            self._note(str(error))

    def _wait_for_rest(self) -> None:
        try:
            until(self._is_at_rest, "a root at rest", seconds=_REST_SECONDS)
        except RuntimeError as error:
            self._note(f"{error}: {self._restless}")

    def _note(self, text: str) -> None:
        if not any(
            text.partition("\n")[0] == earlier.partition("\n")[0] for earlier in self.outcome.violations
        ):
            faults = "".join(f"\n    {fault}" for fault in self.recent)
            self.outcome.violations.append(f"{text}\n  after these faults:{faults}")
            self.tell(f"VIOLATION {self.outcome.violations[-1]}")

    def _is_at_rest(self) -> bool:
        """Make a change, which finishes what the dead left, and a pass; tell whether nothing is open."""
        self.interrupt.sleep_until(time.monotonic() + 0.2)
        try:
            settle(self.soaked.fleet)
            drifts = self.soaked.fleet.monitor.once()["drifts"]
        except MamError as error:
            self._restless = repr(error)
            return False
        query = "SELECT count(*) FROM messages WHERE state='typing'"
        registry = self.soaked.fleet._access.context.registry
        typing = registry.peek(lambda found: found.connection.execute(query).fetchone()[0], 0)
        intents = len(registry.view().intents)
        is_complete = self.soaked.reporter.publish_missing()
        # A pass leaves a session alone that a person has just changed, also one that has died since.
        changing = list(invariants.panes(self.soaked))
        self._restless = f"{typing} typed, {intents} intents, {drifts}, {changing}, complete: {is_complete}"
        return not (typing or intents or drifts or changing) and is_complete

    def _check_second_recovery(self) -> None:
        """I8: without a resident, the second of two recoveries changes nothing."""
        self.soaked.reporter.stop()
        # No agent reports anything meanwhile.
        self.soaked.stage.tmux.kill_server(timeout=60)
        if (pid := resident_pid(self.soaked.stage)) is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        until(lambda: resident_pid(self.soaked.stage) is None, "the end of the resident", seconds=60)
        settings = self.soaked.stage.home / ".config" / "mam" / "config.toml"
        settings.write_text(settings.read_text(encoding="utf-8").replace('"auto"', '"off"'), encoding="utf-8")
        self._wait_for_rest()
        settle(self.soaked.fleet)
        before = recorded(self.soaked.stage.root)
        settle(self.soaked.fleet)
        after = recorded(self.soaked.stage.root)
        if before != after:
            changed = [line[:300] for line in {*before} ^ {*after}]
            self._note(f"I8: a second recovery changed {changed[:10]}")

    # ------------------------------------------------------------ the table

    def _summarise(self) -> None:
        lines = self.outcome.lines
        lines.append(Line("seed", str(self.plan.seed)))
        lines += fault_lines(self.tried, self.applied, self.missed)
        lines += operation_lines(self.soaked.history.calls)
        lines.append(Line("events of the remote reporter", str(self.soaked.reporter.count())))
        lines += self._resident_lines()
        lines += size_lines(self.sampler.largest, _MOST_DATABASE)
        lines.append(exactly("violations", len(self.outcome.violations), 0))

    def _resident_lines(self) -> list[Line]:
        lives: dict[int, list[Sample]] = {}
        for sample in self.sampler.samples:
            lives.setdefault(sample.pid, []).append(sample)
        lines = (
            [Line("residents", f"{len(lives)}, p50 {median(map(_seconds, lives.values())):.0f} s")]
            if lives
            else []
        )
        most = {
            name: max((getattr(one, name) for one in self.sampler.samples), default=0) for name in _BOUNDS
        }
        for name, bound in _BOUNDS.items():
            limit = bound(self.plan.sessions)
            lines.append(
                Line(f"most {name} of a resident", f"{most[name]:g}", f"{limit:g}", most[name] <= limit)
            )
        for pid, samples in lives.items():
            if _seconds(samples) >= _LONG_LIFE:
                name = f"resident {pid}, {_seconds(samples):.0f} s"
                lines += growth_lines(name, samples, _spares(self.plan.sessions))
        return lines


_BOUNDS = {
    "descriptors": lambda sessions: _DESCRIPTORS + _DESCRIPTORS_OF_SESSION * sessions,
    "threads": lambda _sessions: _THREADS,
}


def _spares(sessions: int) -> dict[str, float]:
    """Return by how much a resident may grow whatever it had: sessions come and go, and jobs become more."""
    return {"memory": 32.0 * MB, "descriptors": 2.0 * sessions, "threads": 8.0}


def _seconds(samples: Sequence[Sample]) -> float:
    return samples[-1].at - samples[0].at
