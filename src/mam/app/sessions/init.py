"""Make a directory a root on purpose."""

from __future__ import annotations

from mam.adapters.store import root_paths
from mam.adapters.system.mounts import network_filesystem
from mam.app.context import claims
from mam.app.context.context import Resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.caller import Caller


def init(context: Context, caller: Caller) -> str:
    """Make the workspace itself a root, also below another one; return its registry file."""
    paths = root_paths.of_root(context.workspace)
    here = context.replace(paths=paths, resources=Resources(paths, context.environ, context.clock))
    was_there = here.paths.exists()
    try:
        claims.change(here, lambda draft: None if was_there else draft.log(caller.name, "init", None))
        here.user_state.remember_root(here.paths.root, here.paths.yaml)
        warn_of_network(here)
        if not was_there and context.paths.exists() and context.paths.root != here.paths.root:
            context.warn(
                f"{context.paths.root} is a root above this one; its sessions are not seen from here"
            )
    finally:
        here.close()
    return here.paths.yaml


def warn_of_network(context: Context) -> None:
    """Say so when the state lies where locks cannot be trusted."""
    kind = network_filesystem(context.paths.root)
    if kind:
        context.warn(f"{context.paths.root} is on a network file system ({kind}); locks may not hold there")
