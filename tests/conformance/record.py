"""Record the screens of a program: `python -m tests.conformance.record KIND [SCENE...] [--size 100x30]`.

It plays the scenes with the real program in a private tmux server, and writes below `screens/KIND/`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

from tests.conformance.programs import KINDS
from tests.conformance.scenes import scenes_of
from tests.conformance.stage import stage
from tests.conformance.terminal import Terminals

SIZES = ("200x50", "100x30")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("scene", nargs="*", help="all of them without one")
    parser.add_argument("--size", action="append", choices=SIZES, help="both without one")
    wanted = parser.parse_args()
    # Not in /tmp: Codex warns about a home there.
    place = Path(tempfile.mkdtemp(prefix="mc-", dir="/var/tmp"))
    try:
        with Terminals(f"mam-conf-{os.getpid()}", place) as terminals:
            for size in wanted.size or SIZES:
                record(wanted.kind, wanted.scene, size, terminals)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def record(kind: str, wanted: list[str], size: str, terminals: Terminals) -> None:
    width, height = (int(number) for number in size.split("x"))
    for scene in scenes_of(kind):
        if wanted and scene.name not in wanted:
            continue
        begun = time.monotonic()
        with stage(kind, terminals, (width, height), scene.arguments, **scene.options) as one:
            scene.play(one)
        print(f"{kind} {scene.name} {size}: {time.monotonic() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
