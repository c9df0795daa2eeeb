"""What the demonstration needs of the world: its agents side by side, and a certain end to all of it."""

from __future__ import annotations

import os
from contextlib import suppress

from mam.adapters.system import exit_watch, process
from mam.adapters.tmux import argv
from mam.adapters.tmux.server_process import socket_path
from mam.core.errors import StopUnconfirmed
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

SIGKILL = 9
_GRACE = 5.0


def server_name(pid: int) -> str:
    """Return the tmux server of one demonstration; nobody else uses it."""
    return f"mam-demo-{pid}"


def show(context: Context, server: str) -> None:
    """Show the running sessions to the person at this terminal, and return when they have left."""
    from mam.adapters.tmux.tiled_view import visit

    rows = [row for row in context.registry.view().rows if is_running(row) and row.get("tmux_session_id")]
    if rows:
        visit(context.tmux(server), [row["tmux_session_id"] or "" for row in rows], context.environ)


def end(context: Context, server: str) -> None:
    """End the server and every process in it, and remove its socket; StopUnconfirmed if one stays."""
    tmux = context.tmux(server)
    inside = {one for pane in tmux.panes().panes for one in process.tree(pane.pid, pane.tty)}
    tmux.kill_server()
    for one in exit_watch.wait_gone(inside, _GRACE):
        process.signal(one, SIGKILL)
    left = exit_watch.wait_gone(inside, _GRACE)
    if left or tmux.server_pid() is not None:
        pids = ", ".join(str(one.pid) for one in left) or str(tmux.server_pid())
        raise StopUnconfirmed(
            f"processes {pids} of the demonstration are still there", hint=f"tmux -L {server} ls"
        )
    with suppress(FileNotFoundError):
        os.unlink(socket_path(argv.server_arguments(server), context.environ))
