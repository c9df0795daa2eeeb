"""The live panes of a root whose id changes: they get the mark of the new id, so that they stay its panes."""

from __future__ import annotations

import os
import stat

from mam.adapters.system import process
from mam.app.context.liveness import identity_of
from mam.core.errors import TerminalsDown
from mam.core.root_mark import id_of, is_same_root
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mam.adapters.tmux.client import Tmux
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.session_row import Row


def live_panes(context: Context, rows: Iterable[Row]) -> Iterator[tuple[Tmux, Pane]]:
    """Yield the pane of each running session, with the client of its tmux server.

    A pane counts if the very process that the row names runs in it, and no other root of this user has it.
    """
    for row in filter(is_running, rows):
        identity, server = identity_of(row), row["tmux_server"]
        if identity is None or not is_own_server(server) or not process.is_alive(identity):
            continue
        tmux = context.resources.tmux(server)
        listing = tmux.panes()
        if not listing.confirmed:
            raise TerminalsDown(
                f"'{row['name']}' runs, and its tmux server '{server}' does not answer",
            )
        for pane in listing.panes:
            if (pane.mark, pane.pid) == (row["id"], identity.pid) and not _is_of_other_root(context, pane):
                yield tmux, pane


def _is_of_other_root(context: Context, pane: Pane) -> bool:
    root_id = id_of(pane.root)
    known = context.user_state.root_by_id(root_id) if root_id else None
    return known is not None and not known.is_lost and known.state != context.paths.state


def is_own_server(server: str) -> bool:
    """Tell whether a tmux server is one of this user: by a name, or a socket that this user owns."""
    if "/" not in server:
        return True
    try:
        facts = os.lstat(server)
    except OSError:
        return False
    return stat.S_ISSOCK(facts.st_mode) and facts.st_uid == os.geteuid()


def has_lost_record(context: Context, pane: Pane) -> bool:
    """Tell whether no registry has the session that a pane is marked with.

    The state of its root was deleted, such as by `git clean`, and the root was made anew.
    """
    if is_same_root(pane.root, context.root_mark):
        return context.registry.view().by_id(pane.mark) is None
    root_id = id_of(pane.root)
    known = context.user_state.root_by_id(root_id)
    return root_id is not None and (known is None or known.is_lost)
