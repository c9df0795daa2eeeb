"""What a person waits for: the bare command, and the list of 10, 100 and 1,000 live sessions."""

from __future__ import annotations

import json
import subprocess
from contextlib import ExitStack, chdir
from functools import partial
from typing import TYPE_CHECKING

from bench.crowd import settle
from bench.measure import Budget, Row, alternate, run
from bench.stage import PYTHON, Stage, mam

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PASS = "python -c pass"
AGENT = "the practice agent's modules"


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Compare with an interpreter that does nothing, and the long list with the short one."""
    with ExitStack() as stack:
        plain = stack.enter_context(Stage())
        acts = {
            PASS: partial(run, [PYTHON, "-c", "pass"], plain.environ),
            "mam --version": partial(run, mam("--version"), plain.environ),
            AGENT: partial(
                run, [PYTHON, "-c", "import mam.practice.__main__, mam.practice.loop"], plain.environ
            ),
        }
        for count in (10,) if quick else (10, 100, 1000):
            tell(f"starting {count:,} live sessions")
            stage = stack.enter_context(Stage())
            settle(stage, count, alive=True).close()
            check(stage, count)
            acts[f"mam ls, {count:,} live sessions"] = partial(ls, stage)
        tell("listing them")
        found = alternate(3 if quick else 40, acts)
    few = "mam ls, 10 live sessions"
    for name, times in found.items():
        if name == "mam ls, 1,000 live sessions":
            yield Row(name, times, few, found[few], Budget("times", 2.5))
        elif name == AGENT:
            yield Row(name, times, PASS, found[PASS], Budget("times", 2.5))
        elif name != PASS:
            yield Row(name, times, PASS, found[PASS], Budget("times", 3.5) if " 100 " in name else None)


def ls(stage: Stage) -> None:
    """Run `mam ls` where a person does: in the root."""
    with chdir(stage.root):
        run(mam("ls"), stage.environ)


def check(stage: Stage, count: int) -> None:
    """Make sure that what is listed is alive and known by its hooks, so that the right thing is timed."""
    done = subprocess.run(
        mam("ls", "--json"), cwd=stage.root, env=stage.environ, capture_output=True, check=True
    )
    sessions = json.loads(done.stdout)["sessions"]
    seen = {(one["tmux_alive"], one["activity"], one["activity_source"]) for one in sessions}
    if len(sessions) != count or seen != {(True, "idle", "hook")}:
        raise RuntimeError(f"{len(sessions)} sessions instead of {count}, seen as {seen}")
