"""The tmux server of the demonstration: show its agents side by side, and end all of them."""

from __future__ import annotations

import os
from contextlib import suppress

from mam.adapters.system import exit_watch, process
from mam.core.errors import StopUnconfirmed
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

SIGKILL = 9
_GRACE = 5.0


def server_name(pid: int) -> str:
    """Return the name of the tmux server that one demonstration has for itself."""
    return f"mam-demo-{pid}"


def show(context: Context, server: str) -> None:
    """Show the running sessions in this terminal, and return when the person detaches."""
    from mam.adapters.tmux.tiled_view import show_tiled

    rows = [row for row in context.registry.view().rows if is_running(row) and row.get("tmux_session_id")]
    if rows:
        show_tiled(context.tmux(server), [row["tmux_session_id"] or "" for row in rows], context.environ)


def end(context: Context, server: str) -> None:
    """End the server and every process in it, and remove its socket. Raise StopUnconfirmed if one stays."""
    tmux = context.tmux(server)
    processes = {identity for pane in tmux.panes().panes for identity in process.tree(pane.pid, pane.tty)}
    tmux.kill_server()
    for identity in exit_watch.wait_gone(processes, _GRACE):
        process.signal(identity, SIGKILL)
    survivors = exit_watch.wait_gone(processes, _GRACE)
    if survivors or tmux.server_pid() is not None:
        pids = ", ".join(str(identity.pid) for identity in survivors) or str(tmux.server_pid())
        raise StopUnconfirmed(f"processes {pids} of the demonstration still run", hint=f"tmux -L {server} ls")
    with suppress(FileNotFoundError):
        os.unlink(tmux.socket_path())
