"""What a process and a root have grown to, sampled again and again, and whether that is flat. Linux only."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.store.root_paths import of_root

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.stage import Stage

MB = 1024 * 1024
TICKS = os.sysconf("SC_CLK_TCK")
# What may be more at the end than after the warm-up. A few descriptors come and go with connections.
MOST_GROWTH, SPARE = 0.05, {"memory": 1 * MB, "descriptors": 2.0, "threads": 1.0}
# The first quarter of a run is the warm-up: caches fill, and the allocator finds its size.
WARM_UP = 0.25


@dataclass(frozen=True)
class Sample:
    """A resident at one moment: bytes, and numbers of descriptors and threads."""

    pid: int
    at: float
    memory: float
    descriptors: float
    threads: float


def resident_pid(stage: Stage) -> int | None:
    """Return the process that holds the lock of the resident."""
    holder = ProcessLock(str(Path(of_root(str(stage.root)).state) / "resident.lock")).holder()
    pid = (holder or {}).get("pid")
    return pid if isinstance(pid, int) else None


def sample(pid: int) -> Sample | None:
    """Look at a process; None if it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
        facts = dict(line.split(":", 1) for line in status)
        return Sample(
            pid,
            time.monotonic(),
            int(facts["VmRSS"].split()[0]) * 1024,
            len(os.listdir(f"/proc/{pid}/fd")),  # noqa: PTH208
            int(facts["Threads"]),
        )
    except (OSError, KeyError):
        return None


def work_of(pid: int) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def memory_of(pids: Sequence[int]) -> float:
    """Return the mean memory of processes, what several share divided between them."""
    found = []
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines()
        except OSError:
            continue
        found += [int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")]
    return sum(found) / len(found) if found else 0.0


def sizes(stage: Stage) -> dict[str, float]:
    """Return the bytes of what a root grows: database, its log, the log of residents."""
    state = Path(of_root(str(stage.root)).state)
    logs = (stage.home / "state").rglob("*.log")
    return {
        "database": _size(state / "state.db"),
        "write-ahead log": _size(state / "state.db-wal"),
        "log of residents": sum(map(_size, logs)),
    }


def _size(path: Path) -> float:
    try:
        return path.stat().st_size
    except OSError:
        return 0.0


class Sampler:
    """Takes samples of whatever is the resident, in a thread."""

    def __init__(self, stage: Stage, seconds: float = 0.5) -> None:
        self.stage = stage
        self.samples: list[Sample] = []
        self.largest: dict[str, float] = {}
        self._seconds = seconds
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ends.wait(self._seconds):
            pid = resident_pid(self.stage)
            if pid is not None and (taken := sample(pid)) is not None:
                self.samples.append(taken)
            for name, size in sizes(self.stage).items():
                self.largest[name] = max(self.largest.get(name, 0.0), size)


@dataclass(frozen=True)
class Growth:
    """How much of one thing a process had after its warm-up and at the end."""

    what: str
    before: float
    after: float
    spare: float

    @property
    def is_flat(self) -> bool:
        """Whether it grew by less than a twentieth, or by less than what always comes and goes."""
        return self.after - self.before <= max(MOST_GROWTH * self.before, self.spare)


def growth(samples: Sequence[Sample], spares: Mapping[str, float]) -> list[Growth]:
    """Compare the second quarter of the samples of one process with the last one, by their medians."""
    if not samples:
        return []
    quarter = max(1, int(len(samples) * WARM_UP))
    second, last = samples[quarter : 2 * quarter] or samples, samples[-quarter:]
    return [Growth(what, _middle(second, what), _middle(last, what), spare) for what, spare in spares.items()]


def _middle(samples: Sequence[Sample], what: str) -> float:
    return median(getattr(each, what) for each in samples)
