"""Starting the resident on demand: a verb that starts a session also starts the resident of the root."""

from __future__ import annotations

import os

from mam.adapters.store.process_lock import ProcessLock
from mam.adapters.system import detached_program
from mam.app.context import own_command
from mam.core.inherited_variables import without_inherited

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

# Variables that describe the caller's session and terminal, which are not the resident's.
_CALLER_PREFIXES = ("MAM_", "TMUX")
# Variables with these prefixes that the resident keeps: they name places, not a session or a terminal.
_KEPT = ("MAM_STATE_HOME", "TMUX_SERVER_NAME", "TMUX_TMPDIR")


def ensure(context: Context, *, for_client: bool = False) -> None:
    """Start a resident for this root unless one runs or the setting is off. A failure is only a warning.

    With `for_client` the resident waits a moment for the client to connect, even if no session runs. Raises
    RootRefused for a root that mam may not change.
    """
    context.root.check()
    if context.settings().resident == "off" or lock(context).holder() is not None:
        return
    environ = {
        key: value
        for key, value in without_inherited(context.environ).items()
        if not key.startswith(_CALLER_PREFIXES)
    }
    for name in _KEPT:
        if name in context.environ:
            environ[name] = context.environ[name]
    options = ["--awaits-client"] if for_client else []
    if not detached_program.detach([*command(context), *options], environ, context.paths.root):
        context.warn("no resident could be started; start one by hand: mam monitor")


def command(context: Context) -> list[str]:
    """Return the command that runs the resident of a root."""
    root_options = ["--workspace", context.paths.root]
    if not context.paths.state.endswith("/.mam"):
        root_options += ["--registry", context.paths.yaml]
    return own_command.argv("monitor", "--resident", *root_options)


def lock(context: Context) -> ProcessLock:
    """Return the lock that the one resident of a root holds."""
    return ProcessLock(os.path.join(context.paths.state, "resident.lock"))
