"""A drill that is killed at a step of its way: python -m tests.app.sessions.dying_drill STEP ROOT."""

from __future__ import annotations

import sys

from tests.app.dying import die, then_die

import mam
from mam.app.sessions import drill_run, fork

# What the drill does last; `starting` dies before the program runs.
STEPS = ("starting", "started", "ready", "stopped", "forgotten")


def arm(step: str) -> None:
    if step == "starting":
        fork.start = die
    elif step == "started":
        fork.start = then_die(fork.start)
    elif step == "ready":
        drill_run.wait_until_ready = then_die(drill_run.wait_until_ready)
    elif step == "stopped":
        drill_run.stop = then_die(drill_run.stop)
    elif step == "forgotten":
        drill_run.forget = then_die(drill_run.forget)


if __name__ == "__main__":
    arm(sys.argv[1])
    with mam.open(sys.argv[2]) as fleet:
        fleet.sessions.drill(run=True)
