"""Worker processes that change one registry at the same time. Each prints its acknowledged changes as JSON.

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

from mam.adapters.store import root_paths
from mam.adapters.store.registry import Registry
from mam.core.errors import EditRefused, RegistryBusy, SessionNotFound

PATIENCE = 60.0


def count(registry: Registry, chance: random.Random, changes: int) -> dict:
    """Add one to a key of a row, `changes` times; wait while an edit is in the way."""
    counts: dict[str, int] = {}
    refused = 0
    ids = registry.note(lambda transaction: [row["id"] for row in transaction.rows()])
    deadline = time.monotonic() + PATIENCE
    while sum(counts.values()) < changes:
        session_id = chance.choice(ids)

        def work(transaction, session_id=session_id):
            row = transaction.get(session_id)
            transaction.put({**row, "count": row.get("count", 0) + 1})

        try:
            registry.change(work)
        except (EditRefused, RegistryBusy) as error:
            if "another process" in str(error) or time.monotonic() > deadline:
                raise
            refused += 1
            if not error.recorded:
                continue
        counts[session_id] = counts.get(session_id, 0) + 1
    return {"done": counts, "refused": refused}


def edit(registry: Registry, chance: random.Random, edits: int) -> dict:
    """Edit the file as a person with an editor does; undo an edit that is refused."""
    path = Path(registry.paths.yaml)
    recorded, refused = [], 0
    for number in range(edits):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        starts = [at for at, line in enumerate(lines) if line.startswith("- id: ")]
        at = chance.choice(starts)
        session_id = lines[at].split()[-1]
        key = f"edit_{os.getpid()}_{number}"
        lines.insert(at + 1, f"  {key}: {number}\n")
        beside = path.with_name(f"edited-{os.getpid()}")
        beside.write_text("".join(lines), encoding="utf-8")
        inode = beside.stat().st_ino
        beside.rename(path)
        try:
            registry.change(lambda transaction: None)
        except RegistryBusy:
            pass
        except EditRefused:
            refused += 1
            if path.stat().st_ino == inode:
                path.unlink()
                registry.change(lambda transaction: None)
                continue
        recorded.append((session_id, key, number))
    return {"taken": recorded, "refused": refused}


def read(registry: Registry, chance: random.Random, seconds: int) -> dict:
    """Read the registry again and again, as `ls` does."""
    reads = 0
    deadline = time.monotonic() + seconds
    names = {row["id"] for row in registry.view().rows}
    while time.monotonic() < deadline and not Path(registry.paths.root, "done").exists():
        rows = registry.view().rows
        if not names <= {row["id"] for row in rows}:
            raise SessionNotFound("a session was missing for a moment")
        reads += 1
        if chance.random() < 0.1:
            registry.close()
    return {"looks": reads}


def main() -> None:
    """Run the task of the command line."""
    task, root, seed, amount = sys.argv[1:]
    registry = Registry(root_paths.of_root(root), time.time)
    work = {"count": count, "edit": edit, "read": read}[task]
    print(json.dumps(work(registry, random.Random(int(seed)), int(amount))))
    registry.close()


if __name__ == "__main__":
    main()
