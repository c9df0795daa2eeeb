"""Whether the caller may do something to another session: `core/rank.py` on the registry as it is."""

from __future__ import annotations

import os

from mam.adapters.store import teams
from mam.app import caller
from mam.core import names, rank
from mam.core.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.world import World
    from mam.core.row import Row


def check(world: World, act: str, target: str) -> Row:
    """Return the session that is meant, or refuse."""
    view = world.registry.view()
    row = view.find(target)
    rank.check(act, caller.actor(world), row, view.rows, world.settings().mcp, masters=_masters(world))
    return row


def reachable(world: World, act: str) -> list[str]:
    """Return the ids of the sessions to which the caller may do something."""
    me, rows, grants, masters = (
        caller.actor(world),
        world.registry.view().rows,
        world.settings().mcp,
        _masters(world),
    )

    def may(row: Row) -> bool:
        try:
            rank.check(act, me, row, rows, grants, masters=masters)
        except NotAllowed:
            return False
        return True

    return [row["id"] for row in rows if row.get("id") and may(row)]


def _masters(world: World) -> set[str]:
    none: list[teams.Team] = []
    return {one.master_id for one in world.registry.peek(teams.listed, none) if one.master_id}


def check_child(world: World, agent: str, permissions: str | None, usual: str) -> str | None:
    """Return the permissions that a child of the caller runs with, or refuse the birth.

    The operator's own wish is left as it is; None means what the settings say, or the program does.
    """
    me = caller.actor(world)
    if me == rank.OPERATOR:
        return permissions
    view = world.registry.view()
    own = view.find(me)
    rank.check_birth(me, view.rows)
    _check_directory(world, own)
    given = rank.child_permissions(permissions, usual, own.get("permissions") or "default")
    return given if permissions or world.kind(names.parse_kind(agent)).takes_permissions else None


def _check_directory(world: World, own: Row) -> None:
    """A session starts others where it works itself, or elsewhere in its root."""
    wanted = os.path.join(world.workspace, "")
    if not any(wanted.startswith(os.path.join(one, "")) for one in (world.place.root, own["workspace"])):
        raise NotAllowed(
            f"a session starts others below {world.place.root}, not in {world.workspace}",
            hint="name a directory of this root",
        )
