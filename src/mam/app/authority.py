"""Whether the caller may do something to another session: `core/rank.py` on the registry as it is."""

from __future__ import annotations

import os

from mam.app import caller
from mam.core import rank
from mam.core.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.world import World
    from mam.core.row import Row


def check(world: World, act: str, target: str) -> Row:
    """Return the session that is meant, or refuse."""
    view = world.registry.view()
    row = view.find(target)
    rank.check(act, caller.actor(world), row, view.rows, world.settings().mcp)
    return row


def check_child(world: World, permissions: str | None, usual: str) -> str | None:
    """Return the permissions that a child of the caller runs with, or refuse the birth.

    The operator's own wish is left as it is: None means what the settings say.
    """
    me = caller.actor(world)
    if me == rank.OPERATOR:
        return permissions
    view = world.registry.view()
    own = view.find(me)
    rank.check_birth(me, view.rows)
    _check_directory(world, own)
    return rank.child_permissions(permissions, usual, own.get("permissions") or "default")


def _check_directory(world: World, own: Row) -> None:
    """A session starts others where it works itself, or elsewhere in its root."""
    wanted = os.path.join(world.workspace, "")
    if not any(wanted.startswith(os.path.join(one, "")) for one in (world.place.root, own["workspace"])):
        raise NotAllowed(
            f"a session starts others below {world.place.root}, not in {world.workspace}",
            hint="name a directory of this root",
        )
