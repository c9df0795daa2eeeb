"""What a verb may do in a root that somebody else made: act on this user's own panes, by the marks on them.

The registry of somebody else may name any tmux server, so a server counts only by its name, which lies in
this user's own folder. A pane counts only if it carries the id of the root.
"""

from __future__ import annotations

from mam.adapters.system import process
from mam.core.root_mark import id_of
from mam.core.root_state import RootState
from mam.core.session_row import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.tmux.client import Tmux
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.session_row import Row


def is_foreign(context: Context) -> bool:
    """Tell whether somebody else made the root."""
    return context.root.verdict().state == RootState.FOREIGN


def own_pane(context: Context, row: Row) -> tuple[Tmux, Pane]:
    """Return the live pane of a session with the client of its tmux server; raise RootForeign without one."""
    root_id, server = context.root_id, row["tmux_server"]
    if root_id is not None and "/" not in server:
        tmux = context.resources.tmux(server)
        for pane in tmux.panes().panes:
            if pane.mark == row.get("id") and id_of(pane.root) == root_id and not pane.dead:
                return tmux, pane
    refusal = context.root.refusal()
    assert refusal is not None
    raise refusal


def with_own_pane(context: Context, row: Row) -> tuple[Context, Row]:
    """Return a context that may look at the session's pane, and the row with the pane that was found.

    In a root that is not foreign both are returned as they are.
    """
    if not is_foreign(context):
        return context, row
    _, pane = own_pane(context, row)
    start = process.start_of(pane.pid)
    record = {"id": pane.id, "pid": pane.pid, "pid_start": start, "boot_id": process.boot_id()}
    return context.for_own_pane(), merged(row, pane={**row["pane"], **record})
