"""The comparison from installation to page: `./dev bench --peers`."""

from __future__ import annotations

import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.measure import Times
from bench.peers import chart, page, works
from bench.peers.place import Failed, Place
from bench.peers.programs import PROGRAMS, version_of
from bench.peers.texts import hard_texts

RESULTS = Path(__file__).with_name("results.json")
DOCS = Path(__file__).resolve().parents[2] / "docs"
SMALL, LARGE = 10, 100


def run(quick: bool) -> int:
    """Measure every program and show the tables; a full run also writes the page and the chart."""
    uv = os.environ.get("UV_PROGRAM") or shutil.which("uv")
    if uv is None:
        print("bench: uv is missing; start this as ./dev bench --peers", file=sys.stderr)
        return 2
    folder = Path(tempfile.mkdtemp(prefix="mam-bench-")).resolve()
    sides: list[works.Side] = []
    try:
        for kind in PROGRAMS:
            sides.append(works.Side(kind(Place(folder / kind.name.lower()))))
        measured = _measure(sides, uv, quick)
    finally:
        # A second Ctrl-C has to wait.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for side in sides:
            side.place.clear()
        shutil.rmtree(folder, ignore_errors=True)
        signal.signal(signal.SIGINT, before)
    if quick:
        print(page.render(measured))
    else:
        RESULTS.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write(measured)
        print(f"written: {RESULTS}, docs/benchmarks.md, docs/benchmarks.svg")
    return 0


def write(measured: dict[str, Any]) -> None:
    """Write the page and the chart of a run."""
    (DOCS / "benchmarks.md").write_text(page.render(measured), encoding="utf-8")
    (DOCS / "benchmarks.svg").write_text(chart.draw(measured), encoding="utf-8")


def _measure(sides: list[works.Side], uv: str, quick: bool) -> dict[str, Any]:
    small, large = (2, 4) if quick else (SMALL, LARGE)
    number = 1 if quick else 6
    clock = Clock()
    clock.say("installing")
    here = [side for side in sides if _installed(side, uv)]
    clock.say("creating, sending and stopping, in rounds")
    works.rounds(
        here, number, {"create": lambda s: s.create, "send": lambda s: s.send, "stop": lambda s: s.stop}
    )
    _list(here, small, SMALL, number, clock)
    clock.say("sending hard texts")
    texts = hard_texts()
    if quick:
        texts = {name: texts[name] for name in list(texts)[:2]}
    # No times are taken here, so the programs may work side by side.
    with ThreadPoolExecutor(len(here)) as crew:
        list(crew.map(lambda side: works.hard(side, texts), here))
    clock.say("stopping agents that have children")
    for side in here:
        clock.say(f"  {side.program.name}")
        works.children(side)
    clock.say("killing sends half way")
    for side in here:
        works.kill_send(side)
    _list(here, large, LARGE, max(1, number - 2), clock)
    clock.say("killing managers")
    for side in here:
        works.kill_manager(side)
    clock.say("ending")
    return as_results(sides, quick=quick, rounds=number)


def _list(here: list[works.Side], size: int, shown: int, number: int, clock: Clock) -> None:
    """Fill every program up to a size and list; in a quick run the size is smaller than its name says."""
    clock.say(f"starting {size} sessions of each program")
    # No times are taken here either; most programs wait more than they work.
    with ThreadPoolExecutor(3) as crew:
        list(crew.map(lambda side: side.fill(size), here))
    clock.say(f"listing {size} sessions")
    name = f"list {shown}"
    works.rounds(
        [side for side in here if name not in side.failures], number, {name: lambda s: lambda: s.list(shown)}
    )


def _installed(side: works.Side, uv: str) -> bool:
    """Install and start a program; tell whether it can be measured."""
    try:
        side.program.install(uv)
        side.program.start()
    except (Failed, RuntimeError, subprocess.TimeoutExpired) as failure:
        side.failures["install"] = str(failure)
        return False
    return True


class Clock:
    """Says what is done, and when: the run takes minutes."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def say(self, what: str) -> None:
        """Say the next step."""
        print(f"bench: {time.monotonic() - self.began:4.0f} s  {what}", file=sys.stderr, flush=True)


def as_results(sides: list[works.Side], *, quick: bool, rounds: int) -> dict[str, Any]:
    """Return the run as plain values: everything that the page and the chart show."""
    return {
        "quick": quick,
        "rounds": rounds,
        "machine": machine(),
        "programs": [
            {
                "name": side.program.name,
                "version": version_of(side.program.name),
                "works": {name: as_numbers(values) for name, values in side.samples.items()},
                "failures": side.failures,
                "facts": side.facts,
            }
            for side in sides
        ],
    }


def as_numbers(values: list[float]) -> dict[str, float]:
    """Return what is kept of the times of a work, in milliseconds."""
    times = Times(tuple(values))
    return {"median": round(times.median, 1), "best": round(times.best, 1), "runs": len(values)}


def machine() -> dict[str, Any]:
    """Describe the machine by its cores, its memory, and the programs that all others stand on."""
    tmux = subprocess.run(["tmux", "-V"], capture_output=True, text=True, check=True).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "memory GB": round(memory),
        "system": platform.system(),
        "python": platform.python_version(),
        "tmux": tmux.removeprefix("tmux "),
    }
