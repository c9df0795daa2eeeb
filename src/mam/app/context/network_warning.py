"""Warns of a root on a network file system."""

from __future__ import annotations

from mam.adapters.system.mounts import network_filesystem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context


def warn_of_network(context: Context) -> None:
    """Warn if the root is on a network file system, where file locks may not work."""
    kind = network_filesystem(context.paths.root)
    if kind:
        context.warn(f"{context.paths.root} is on a network file system ({kind}), where locks may not work")
