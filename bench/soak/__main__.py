"""Put a root under load, or let it soak: python -m bench.soak; `./dev soak` runs it.

Exit status: 0 everything holds, 1 something does not, 64 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
from typing import TYPE_CHECKING

from bench.soak.interrupt import Interrupt
from bench.soak.load import Amount, load
from bench.soak.report import is_good, render
from bench.soak.soak import Plan, soak
from mam.surfaces.cli.main import repeat_lost_interrupt

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Run what was asked for."""
    try:
        options = _parser().parse_args()
    except SystemExit as end:
        return 64 if end.code else 0
    began = time.monotonic()

    def tell(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    try:
        return _load(options, tell) if options.load else _soak(options, tell)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _load(options: argparse.Namespace, tell: Callable[[str], None]) -> int:
    amount = Amount(
        options.sessions or 500,
        seconds=60 * (options.minutes or 2.0),
        messages=options.messages,
        events=options.events,
    )
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    sys.unraisablehook = repeat_lost_interrupt
    lines = load(amount, tell)
    print(render(lines))
    return 0 if is_good(lines) else 1


def _soak(options: argparse.Namespace, tell: Callable[[str], None]) -> int:
    plan = Plan(
        seed=random.randrange(2**32) if options.seed is None else options.seed,
        seconds=60 * (options.minutes or 20.0),
        every=options.every,
        sessions=options.sessions or 50,
        faults=options.faults,
    )
    interrupt = Interrupt()
    interrupt.watch()
    outcome = soak(plan, interrupt, tell)
    print(render(outcome.lines))
    for text in outcome.violations:
        print(f"\nVIOLATION {text}")
    return 0 if is_good(outcome.lines) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__.splitlines()[0])
    parser.add_argument("--load", action="store_true", help="no faults, but messages and events at full rate")
    parser.add_argument("--sessions", type=int, help="practice sessions (50; with --load 500)")
    parser.add_argument("--minutes", type=float, help="how long (20; with --load 2)")
    parser.add_argument("--messages", type=float, default=20.0, help="with --load: messages a second (20)")
    parser.add_argument("--events", type=float, default=500.0, help="with --load: events a second (500)")
    parser.add_argument("--every", type=float, default=5.0, help="seconds between two faults (5)")
    parser.add_argument("--faults", type=int, help="end after so many faults instead")
    parser.add_argument("--seed", type=int, help="which faults and operations come, and when")
    return parser


if __name__ == "__main__":
    sys.exit(main())
