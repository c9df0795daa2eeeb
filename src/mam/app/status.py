"""One session, whole: its row and everything that is known about it now. Reads only."""

from __future__ import annotations

from mam.app.ls import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.world import World


def status(world: World, target: str) -> dict[str, Any]:
    """Return one session as `ls` shows it, looked at thoroughly."""
    view = world.registry.view()
    row = view.find(target)
    return describe(world, view, lambda one: one["name"] == row["name"], thorough=True)[0]
