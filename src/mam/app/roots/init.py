"""Make a directory a root, although a directory above it may be one."""

from __future__ import annotations

from mam.adapters.store import root_paths
from mam.app.context import claims
from mam.app.context.context import Resources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.caller import Caller


def init(context: Context, caller: Caller) -> str:
    """Make the workspace itself a root, even below another root; return the path of its registry file."""
    paths = root_paths.of_root(context.workspace)
    resources = Resources(paths, context.environ, context.clock, context.settings_environ)
    root_context = context.replace(paths=paths, resources=resources)
    existed = root_context.paths.exists()
    try:
        claims.change(
            root_context, lambda transaction: None if existed else transaction.log(caller.name, "init", None)
        )
        if not existed and context.paths.exists() and context.paths.root != root_context.paths.root:
            context.warn(
                f"{context.paths.root} above it is a root too; mam does not show its sessions in this one"
            )
    finally:
        root_context.close()
    return root_context.paths.yaml
