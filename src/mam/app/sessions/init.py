"""Make a directory a root on purpose."""

from __future__ import annotations

from mam.adapters.store import root_paths
from mam.adapters.system.mounts import network_filesystem
from mam.app.context import caller, claims
from mam.app.context.context import World


def init(world: World) -> str:
    """Make the workspace itself a root, also below another one; return its registry file."""
    here = World(root_paths.of_root(world.workspace), world.workspace, world.environ)
    here.progress, here.warn = world.progress, world.warn
    was_there = here.place.exists()
    try:
        claims.change(here, lambda draft: None if was_there else draft.log(caller.actor(here), "init", None))
        here.host.remember_root(here.place.root, here.place.yaml)
        warn_of_network(here)
        if not was_there and world.place.exists() and world.place.root != here.place.root:
            world.warn(f"{world.place.root} is a root above this one; its sessions are not seen from here")
    finally:
        here.close()
    return here.place.yaml


def warn_of_network(world: World) -> None:
    """Say so when the state lies where locks cannot be trusted."""
    kind = network_filesystem(world.place.root)
    if kind:
        world.warn(f"{world.place.root} is on a network file system ({kind}); locks may not hold there")
