"""Time, taken so that a noisy machine does not decide: alternating rounds, medians, ratios of one run."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import TYPE_CHECKING

from mam.adapters.system import load_adjusted_clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Act = Callable[[], float | None]

DEADLINE_SECONDS = 30.0
_STEP = 0.0005


@dataclass(frozen=True)
class Times:
    """The durations of one thing, in milliseconds."""

    all: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return median(self.all)

    @property
    def best(self) -> float:
        """The fastest: what it costs when nobody disturbs."""
        return min(self.all)

    @property
    def p95(self) -> float:
        """The one that 95 of 100 do not exceed, by nearest rank."""
        return sorted(self.all)[ceil(0.95 * len(self.all)) - 1]


@dataclass(frozen=True)
class Budget:
    """A limit and what it limits: `times` the baseline, `faster` than it, ms `beyond` it, or plain `ms`.

    `p95` limits what 95 of 100 do not exceed, in ms.
    """

    kind: str
    limit: float

    def __str__(self) -> str:
        """Say it as the design does."""
        words = {
            "times": "<= {:g} x",
            "faster": ">= {:g} x faster",
            "beyond": "<= +{:g} ms",
            "ms": "<= {:g} ms",
            "p95": "p95 <= {:g} ms",
        }
        return words[self.kind].format(self.limit)

    def holds(self, times: Times, beside: Times) -> bool:
        """Tell whether two medians keep it, or the p95."""
        measured, baseline = times.median, beside.median
        return {
            "times": measured <= self.limit * baseline,
            "faster": measured * self.limit <= baseline,
            "beyond": measured - baseline <= self.limit,
            "ms": measured <= self.limit,
            "p95": times.p95 <= self.limit,
        }[self.kind]


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, beside what, and what it may cost."""

    what: str
    times: Times
    beside: str
    baseline: Times
    budget: Budget | None = None

    @property
    def ok(self) -> bool | None:
        """Whether the budget is kept; None without one."""
        return self.budget.holds(self.times, self.baseline) if self.budget else None


def alternate(rounds: int, *phases: Mapping[str, Act]) -> dict[str, Times]:
    """Run every act once per round, phase after phase, and return their times.

    The order within a phase is reversed every other round, and one round before the first warms the
    caches. An act that needs preparation returns the seconds that count; otherwise the whole call does.
    """
    found: dict[str, list[float]] = {name: [] for acts in phases for name in acts}
    for number in range(-1, rounds):
        for acts in phases:
            for name in acts if number % 2 else reversed(acts):
                seconds = _seconds(acts[name])
                if number >= 0:
                    found[name].append(seconds * 1000)
    return {name: Times(tuple(values)) for name, values in found.items()}


def _seconds(act: Act) -> float:
    began = time.perf_counter()
    own = act()
    whole = time.perf_counter() - began
    return whole if own is None else own


def run(argv: Sequence[str], environ: Mapping[str, str], stdin: str = os.devnull) -> None:
    """Run a program to its end, its output thrown away; posix_spawn, because it costs the least around it."""
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    pid = os.posix_spawn(argv[0], list(argv), dict(environ), file_actions=actions)  # noqa: TID251
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status != 0:
        raise RuntimeError(f"exit status {status}: {' '.join(argv)}")


def until(condition: Callable[[], object], what: str, seconds: float = DEADLINE_SECONDS) -> None:
    """Wait for a condition, under a deadline that grows with the load of the machine."""
    deadline = load_adjusted_clock.now() + seconds
    while not condition():
        if load_adjusted_clock.now() > deadline:
            raise RuntimeError(f"waited in vain: {what}")
        time.sleep(_STEP)
