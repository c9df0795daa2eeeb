"""What `mam ls` imports, and what each import costs. For reading; there is no budget."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

from bench.crowd import settle
from bench.stage import PYTHON, Stage

_RUNS = 7
_SHOWN = 10


class Import(NamedTuple):
    """One module: its own time and that of everything it brought along, in ms."""

    own: float
    whole: float
    module: str


def report() -> list[str]:
    """Return the ten dearest imports, as lines."""
    runs = []
    with Stage() as stage:
        settle(stage, 10, alive=True).close()
        for _ in range(_RUNS):
            runs.append(_run(stage))
    names = {one.module for run in runs for one in run}
    best = [
        min((one for run in runs for one in run if one.module == name), key=lambda one: one.own)
        for name in names
    ]
    best.sort(reverse=True)
    whole = sum(one.own for one in best)
    ours = sum(one.own for one in best if one.module.split(".")[0] == "mam")
    head = f"imports of mam ls: {len(best)} modules, {whole:.1f} ms, {ours:.1f} of it mam's own"
    return [head, *(f"{one.own:7.2f} {one.whole:7.2f}  {one.module}" for one in best[:_SHOWN])]


def _run(stage: Stage) -> list[Import]:
    done = subprocess.run(
        [PYTHON, "-X", "importtime", "-m", "mam", "ls"],
        cwd=stage.root,
        env=stage.environ,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    lines = [line.split(":", 1)[1].split("|") for line in done.stderr.splitlines() if "|" in line]
    return [
        Import(int(own) / 1000, int(whole) / 1000, module.strip())
        for own, whole, module in lines
        if own.strip().isdigit()
    ]
