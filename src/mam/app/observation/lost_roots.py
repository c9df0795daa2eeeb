"""Roots of the user whose state is gone: which of them anything can be done for, and what."""

from __future__ import annotations

import os
from shlex import quote

from mam.adapters.store import backup_file, root_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.backup_rotation import Copy


def copies_of(context: Context, registry: str) -> list[Copy]:
    """Return the copies of the root with this registry, the newest first."""
    state = root_paths.of_registry(registry).state
    known = context.user_state.root_at(state)
    return backup_file.copies(context.user_state.folder, known.id if known else None, state)


def way_to_restore(root: str) -> str:
    """Return the command that brings a root back from its newest copy."""
    folder = "" if os.path.isdir(root) else f"mkdir -p {quote(root)}; "
    return f"{folder}mam restore --workspace {quote(root)} brings it back"


def way_back(context: Context, root: str, registry: str) -> str | None:
    """Return what helps a root whose state is gone; None if its folder is gone, too, and there is no copy."""
    if copies_of(context, registry):
        return way_to_restore(root)
    begin = f"mam init --new --workspace {quote(root)} begins anew"
    return f"there is no copy of it; {begin}" if os.path.isdir(root) else None
