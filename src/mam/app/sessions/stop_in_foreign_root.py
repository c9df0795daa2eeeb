"""End a session of a root that somebody else made: its pane and its processes. Nothing is recorded there."""

from __future__ import annotations

from mam.adapters.system import exit_watch, process
from mam.app.observation.foreign_root import own_pane
from mam.core import stop_escalation
from mam.core.errors import NotAllowed, PaneGone, StopUnconfirmed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.session_row import Row

SIGKILL = 9


def stop_in_foreign_root(context: Context, target: str) -> Row:
    """Close the pane of a session, and kill the processes that stay; return the row, which stays as it is."""
    row = context.view_to_show().find(target)
    tmux, pane = own_pane(context, row)
    tree = process.tree(pane.pid, pane.tty)
    if process.me() in tree:
        raise NotAllowed(f"this command runs inside '{row['name']}'", hint="run it outside of the session")
    if not tmux.kill_pane(pane.id, mark=pane.mark, pid=pane.pid):
        raise PaneGone(f"the pane of '{row['name']}' was closed just now")
    survivors = exit_watch.wait_gone(tree, stop_escalation.GRACE[stop_escalation.HANG_UP])
    for identity in survivors:
        process.signal(identity, SIGKILL)
    if survivors and exit_watch.wait_gone(survivors, stop_escalation.GRACE[stop_escalation.KILL]):
        raise StopUnconfirmed(f"processes of '{row['name']}' still run")
    return row
