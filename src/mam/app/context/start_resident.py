"""Starting the resident on demand: whoever starts a session sees to it that somebody is awake."""

from __future__ import annotations

import os

from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.system import program_lookup
from mam.app.context import own_command
from mam.core.inherited_variables import without_inherited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

_STRANGE = ("MAM_", "TMUX")


def ensure(context: Context, *, for_client: bool = False) -> None:
    """Start a resident for this root unless one is awake, or the settings say off. Never fails a verb.

    One that is started for a client waits a moment for it, though nothing runs.
    """
    if context.settings().resident == "off" or lock(context).holder() is not None:
        return
    known = without_inherited(context.environ)
    environ = {key: value for key, value in known.items() if not key.startswith(_STRANGE)}
    if "TMUX_SERVER_NAME" in context.environ:
        environ["TMUX_SERVER_NAME"] = context.environ["TMUX_SERVER_NAME"]
    if "TMUX_TMPDIR" in context.environ:
        environ["TMUX_TMPDIR"] = context.environ["TMUX_TMPDIR"]
    awaits = ["--awaits-client"] if for_client else []
    if not program_lookup.detach([*command(context), *awaits], environ, context.paths.root):
        context.warn("no resident could be started; mam monitor starts one by hand")


def command(context: Context) -> list[str]:
    """Return what runs the resident of a root."""
    which = ["--workspace", context.paths.root]
    if not context.paths.state.endswith("/.mam"):
        which += ["--registry", context.paths.yaml]
    return own_command.argv("monitor", "--resident", *which)


def lock(context: Context) -> ProcessLock:
    """Return what one resident of a root holds."""
    return ProcessLock(os.path.join(context.paths.state, "resident.lock"))
