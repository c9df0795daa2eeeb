"""Record the screens of a program: `python -m tests.conformance.record KIND [SCENE...] [--size 100x30]`.

It plays the scenes with the real program in a private tmux server, and writes below `screens/KIND/`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.conformance.program import taking_part
from tests.conformance.scenes import scenes_of
from tests.conformance.stage import stage
from tests.conformance.terminal import Terminals

SIZES = ("200x50", "100x30")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=taking_part("screens"))
    parser.add_argument("scene", nargs="*", help="all of them without one")
    parser.add_argument("--size", action="append", choices=SIZES, help="both without one")
    wanted = parser.parse_args()
    # Not in /tmp: Codex warns about a home there.
    place = Path(tempfile.mkdtemp(prefix="mc-", dir="/var/tmp"))
    failed = []
    try:
        with Terminals(f"mam-conf-{os.getpid()}", place) as terminals:
            for size in wanted.size or SIZES:
                failed += record(wanted.kind, wanted.scene, size, terminals)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(f"failed: {' '.join(failed)}" if failed else "all recorded")
    return 1 if failed else 0


def record(kind: str, wanted: list[str], size: str, terminals: Terminals) -> list[str]:
    """Play the wanted scenes one after the other, and return the names of those that failed."""
    width, height = (int(number) for number in size.split("x"))
    failed = []
    for scene in scenes_of(kind):
        if wanted and scene.name not in wanted:
            continue
        begun = time.monotonic()
        try:
            with stage(kind, terminals, (width, height), scene.arguments, **scene.options) as one:
                scene.play(one)
        except AssertionError as error:
            failed.append(f"{scene.name}@{size}")
            print(error)
        print(f"{kind} {scene.name} {size}: {time.monotonic() - begun:.1f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
