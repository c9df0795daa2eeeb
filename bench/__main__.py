"""Measure the budgets of mam: a table per family as it ends, each row beside a baseline of the same run.

Exit status: 0 every budget is kept, 1 one is not, 64 wrong usage. With --quick nothing is judged.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from importlib import import_module
from typing import TYPE_CHECKING

from bench.table import as_json, render

if TYPE_CHECKING:
    from types import FrameType

    from bench.measure import Row

FAMILIES = (
    "startup",
    "registry",
    "lifecycle",
    "hook",
    "send",
    "screens",
    "resident",
    "transcripts",
    "jobs",
    "broker",
    "mcp",
    "agents",
)


def main() -> int:
    """Run the benchmarks that were asked for."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(FAMILIES)} (default: all)")
    parser.add_argument(
        "--quick", action="store_true", help="smallest sizes, few rounds: does it run at all?"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    parser.add_argument(
        "--peers", action="store_true", help="mam beside other programs: writes docs/benchmarks.md"
    )
    parser.add_argument("--imports", action="store_true", help="the ten dearest imports of mam ls")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in FAMILIES]
    if unknown:
        print(
            f"bench: there is no benchmark '{unknown[0]}'; there are {', '.join(FAMILIES)}", file=sys.stderr
        )
        return 64
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        if options.peers:
            return int(import_module("bench.peers.comparison").run(options.quick))
        return _measure(options)
    except KeyboardInterrupt:
        return 130


def _measure(options: argparse.Namespace) -> int:
    rows: list[Row] = []
    if options.names or not options.imports:
        for name in options.names or FAMILIES:
            began = time.monotonic()
            found = list(import_module(f"bench.{name}").measure(options.quick, _tell))
            rows += found
            if not options.json:
                print(f"== {name}, {time.monotonic() - began:.0f} s")
                print("\n".join(render(found)), end="\n\n", flush=True)
        if options.json:
            print(json.dumps({"quick": options.quick, "rows": [as_json(row) for row in rows]}, indent=1))
        else:
            over = [row.what for row in rows if row.ok is False]
            if not options.quick:
                print(f"over their budget: {', '.join(over)}" if over else "every budget is kept")
            _warn()
    if options.imports:
        print("\n".join(import_module("bench.imports").report()))
    return int(not options.quick and any(row.ok is False for row in rows))


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"bench: {text}", file=sys.stderr)


def _warn() -> None:
    """Say when others were at work too: then `fastest` tells more about mam than the medians."""
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > cores:
        print(f"bench: load average {load:.1f} on {cores} cores; repeat on a quiet machine", file=sys.stderr)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
