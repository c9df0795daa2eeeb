"""Where the caller sits: the tmux pane that this command was typed into, if there is one."""

from __future__ import annotations

import os

from mam.app.context.caller import calling_row
from mam.core.errors import InvalidName, TerminalsDown
from mam.core.names import parse_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


class Here:
    """A pane, the server it is on, and the session in it where that is one of ours."""

    __slots__ = ("pane", "row", "server")

    def __init__(self, server: str, pane: Pane, row: Row | None) -> None:
        self.server = server
        self.pane = pane
        self.row = row


def here(context: Context, caller: Caller) -> Here | None:
    """Return the caller's pane, or None outside of tmux. Raises TerminalsDown where nobody can say."""
    row = calling_row(context, caller)
    if row is not None:
        server, pane_id, server_pid = row["tmux_server"], row["pane"].get("id"), row["pane"].get("server_pid")
    else:
        parts = context.environ.get("TMUX", "").rsplit(",", 2)
        pane_id = context.environ.get("TMUX_PANE")
        if len(parts) != 3 or not parts[1].isdigit() or not pane_id:
            return None
        server, server_pid = _server(context, parts[0]), int(parts[1])
    listing = context.tmux(server).panes()
    if not listing.confirmed:
        raise TerminalsDown(f"tmux server '{server}' does not answer", hint=listing.error)
    pane = next((one for one in listing.panes if (one.id, one.server_pid) == (pane_id, server_pid)), None)
    if pane is None:
        return None
    return Here(server, pane, row or _row_in(context, pane))


def _server(context: Context, socket: str) -> str:
    """Return a socket's server as rows name it: by its name where that leads to the same socket."""
    real = os.path.realpath(socket)
    for name in (context.environ.get("TMUX_SERVER_NAME"), os.path.basename(socket)):
        try:
            if name and os.path.realpath(context.tmux(parse_server(name)).socket_path()) == real:
                return name
        except InvalidName:
            continue
    return parse_server(socket)


def _row_in(context: Context, pane: Pane) -> Row | None:
    """Return the session whose pane this is: a person sits at it who typed a command into its shell."""
    if not pane.mark or pane.root != context.paths.root:
        return None
    return context.registry.view().by_id(pane.mark)
