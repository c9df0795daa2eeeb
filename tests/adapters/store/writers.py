"""Processes that work on one registry at once. Run as a module; prints what was acknowledged, as JSON.

python -m tests.adapters.store.writers count ROOT SEED CHANGES
python -m tests.adapters.store.writers edit ROOT SEED EDITS
python -m tests.adapters.store.writers read ROOT SEED SECONDS
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from pathlib import Path

from mam.adapters.store import root_paths as places
from mam.adapters.store.registry import Registry
from mam.core.errors import EditRefused, RegistryBusy, SessionNotFound

PATIENCE = 60.0


def count(registry: Registry, chance: random.Random, changes: int) -> dict:
    """Add one to a key of a row, so many times; an edit in the way is waited for."""
    done: dict[str, int] = {}
    refused = 0
    ids = registry.note(lambda draft: [row["id"] for row in draft.rows()])
    deadline = time.monotonic() + PATIENCE
    while sum(done.values()) < changes:
        session_id = chance.choice(ids)

        def work(draft, session_id=session_id):
            row = draft.get(session_id)
            draft.put({**row, "count": row.get("count", 0) + 1})

        try:
            registry.change(work)
        except (EditRefused, RegistryBusy) as error:
            if "another process" in str(error) or time.monotonic() > deadline:
                raise
            refused += 1
            if not error.recorded:
                continue
        done[session_id] = done.get(session_id, 0) + 1
    return {"done": done, "refused": refused}


def edit(registry: Registry, chance: random.Random, edits: int) -> dict:
    """Edit the file as a person with an editor does; undo an edit that is refused."""
    path = Path(registry.place.yaml)
    taken, refused = [], 0
    for number in range(edits):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        starts = [at for at, line in enumerate(lines) if line.startswith("- id: ")]
        at = chance.choice(starts)
        session_id = lines[at].split()[-1]
        key = f"edit_{os.getpid()}_{number}"
        lines.insert(at + 1, f"  {key}: {number}\n")
        beside = path.with_name(f"edited-{os.getpid()}")
        beside.write_text("".join(lines), encoding="utf-8")
        mine = beside.stat().st_ino
        beside.rename(path)
        try:
            registry.change(lambda draft: None)
        except RegistryBusy:
            pass
        except EditRefused:
            refused += 1
            if path.stat().st_ino == mine:
                path.unlink()
                registry.change(lambda draft: None)
                continue
        taken.append((session_id, key, number))
    return {"taken": taken, "refused": refused}


def read(registry: Registry, chance: random.Random, seconds: int) -> dict:
    """Look at the registry again and again, as `ls` does."""
    looks = 0
    deadline = time.monotonic() + seconds
    names = {row["id"] for row in registry.view().rows}
    while time.monotonic() < deadline and not Path(registry.place.root, "done").exists():
        rows = registry.view().rows
        if not names <= {row["id"] for row in rows}:
            raise SessionNotFound("a session was not there for a moment")
        looks += 1
        if chance.random() < 0.1:
            registry.close()
    return {"looks": looks}


def main() -> None:
    """Do what the command line says."""
    what, root, seed, amount = sys.argv[1:]
    registry = Registry(places.of_root(root), time.time)
    work = {"count": count, "edit": edit, "read": read}[what]
    print(json.dumps(work(registry, random.Random(int(seed)), int(amount))))
    registry.close()


if __name__ == "__main__":
    main()
