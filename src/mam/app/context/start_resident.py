"""Starting the resident on demand: whoever starts a session sees to it that somebody is awake."""

from __future__ import annotations

import os
import sys

from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.system import program_lookup
from mam.core.inherited_variables import without_inherited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import World

_STRANGE = ("MAM_", "TMUX")


def ensure(world: World, *, for_client: bool = False) -> None:
    """Start a resident for this root unless one is awake, or the settings say off. Never fails a verb.

    One that is started for a client waits a moment for it, though nothing runs.
    """
    if world.settings().resident == "off" or lock(world).holder() is not None:
        return
    known = without_inherited(world.environ)
    environ = {key: value for key, value in known.items() if not key.startswith(_STRANGE)}
    if "TMUX_SERVER_NAME" in world.environ:
        environ["TMUX_SERVER_NAME"] = world.environ["TMUX_SERVER_NAME"]
    if "TMUX_TMPDIR" in world.environ:
        environ["TMUX_TMPDIR"] = world.environ["TMUX_TMPDIR"]
    awaits = ["--awaits-client"] if for_client else []
    if not program_lookup.detach([*command(world), *awaits], environ, world.place.root):
        world.warn("no resident could be started; mam monitor starts one by hand")


def command(world: World) -> list[str]:
    """Return what runs the resident of a root."""
    which = ["--workspace", world.place.root]
    if not world.place.state.endswith("/.mam"):
        which += ["--registry", world.place.yaml]
    return [sys.executable, "-P", "-m", "mam", "monitor", "--resident", *which]


def lock(world: World) -> ProcessLock:
    """Return what one resident of a root holds."""
    return ProcessLock(os.path.join(world.place.state, "resident.lock"))
