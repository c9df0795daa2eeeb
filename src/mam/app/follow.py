"""Following a resident: each difference that it records, when it records it. Reads only."""

from __future__ import annotations

import select
import time

from mam.adapters.store import drifts
from mam.adapters.system.files import FileWatch
from mam.app import turns
from mam.app.resident import Resident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.app.turns import Limits
    from mam.app.world import World

    Document = dict[str, Any]
    Tell = Callable[[Document], None]


def attend(world: World, tell: Tell, limits: Limits) -> str:
    """Watch, or follow the resident of this root until it ends and then watch; return why it ended."""
    return turns.in_turn(lambda: Resident(world, tell).run(limits), lambda: follow(world, tell, limits))


def follow(world: World, tell: Tell, limits: Limits) -> str:
    """Tell what is recorded from now on; return why that is over, nothing where the resident has ended."""
    watch = FileWatch()
    watch.keep({world.place.state: None})
    last = world.registry.peek(drifts.newest, 0)
    try:
        while True:
            # Asked first: what a resident recorded before its end is told by us.
            is_watched = turns.is_watched(world)
            if found := _since(world, last):
                last = found[-1][0]
                tell({"drifts": [{**drift, "new": True} for _, drift in found]})
                limits.happened()
            if not is_watched:
                return ""
            if why := limits.over():
                return why
            seconds = min(turns.NET, limits.next_end() - time.monotonic())
            select.select([watch], [], [], max(0.0, seconds))
            watch.poll()
    finally:
        watch.close()


def _since(world: World, number: int) -> list[tuple[int, Document]]:
    none: list[tuple[int, Document]] = []
    return world.registry.peek(lambda draft: drifts.since(draft, number), none)
