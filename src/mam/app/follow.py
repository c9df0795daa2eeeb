"""Following a resident: each difference that it records, when it records it. Reads only."""

from __future__ import annotations

import select
import time

from mam.adapters.store import drifts
from mam.adapters.system.files import FileWatch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.app.world import World

# Where writing in place is not told, the database is looked at this often.
_NET = 1.0


def follow(world: World, *, timeout: float = 0.0, idle_timeout: float = 0.0) -> Iterator[dict[str, Any]]:
    """Yield what is recorded from now on, until the time is over or nothing happened for so long."""
    watch = FileWatch()
    watch.keep({world.place.state: None})
    last = world.registry.peek(drifts.newest, 0)
    began = heard = time.monotonic()
    try:
        while True:
            found = _since(world, last)
            for number, drift in found:
                last = number
                yield {**drift, "new": True}
            now = time.monotonic()
            heard = now if found else heard
            ends = [began + timeout] if timeout else []
            ends += [heard + idle_timeout] if idle_timeout else []
            if ends and now >= min(ends):
                return
            select.select([watch], [], [], min([_NET, *(end - now for end in ends)]))
            watch.poll()
    finally:
        watch.close()


def _since(world: World, number: int) -> list[tuple[int, dict[str, Any]]]:
    none: list[tuple[int, dict[str, Any]]] = []
    return world.registry.peek(lambda draft: drifts.since(draft, number), none)
