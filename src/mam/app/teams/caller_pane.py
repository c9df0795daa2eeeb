"""The tmux pane in which the calling command runs, if it runs in one."""

from __future__ import annotations

import os

from mam.app.context.caller import calling_row
from mam.core.errors import InvalidName, TerminalsDown
from mam.core.names import parse_server
from mam.core.root_mark import is_same_root
from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.tables.teams import Team
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


class CallerPane:
    """A pane, its tmux server, and the row of its session if this root has one."""

    __slots__ = ("pane", "row", "server")

    def __init__(self, server: str, pane: Pane, row: Row | None) -> None:
        self.server = server
        self.pane = pane
        self.row = row


def find_caller_pane(context: Context, caller: Caller) -> CallerPane | None:
    """Return the caller's pane, or None outside of tmux. Raise TerminalsDown if tmux does not answer."""
    row = calling_row(context, caller)
    if row is not None:
        server, pane_id, server_pid = row["tmux_server"], row["pane"].get("id"), row["pane"].get("server_pid")
    else:
        # TMUX holds socket,pid,session. Pane ids are unique only within one server.
        parts = context.environ.get("TMUX", "").rsplit(",", 2)
        pane_id = context.environ.get("TMUX_PANE")
        server_pid = whole_number(parts[1]) if len(parts) == 3 else None
        if server_pid is None or not pane_id:
            return None
        server = _server(context, parts[0])
    listing = context.tmux(server).panes()
    if not listing.confirmed:
        raise TerminalsDown(listing.error or "")
    pane = next(
        (
            candidate
            for candidate in listing.panes
            if (candidate.id, candidate.server_pid) == (pane_id, server_pid)
        ),
        None,
    )
    if pane is None:
        return None
    return CallerPane(server, pane, row or _row_in(context, pane))


def is_master(context: Context, caller: Caller, team: Team) -> bool:
    """Tell whether the calling session is the master of a team: it is recorded so, or is in its pane."""
    if caller.session_id is None:
        return False
    row = calling_row(context, caller)
    pane = row["pane"] if row is not None else {}
    is_in_its_pane = team.master_pane is not None and (team.master_pane, team.server_pid) == (
        pane.get("id"),
        pane.get("server_pid"),
    )
    return caller.session_id == team.master_id or is_in_its_pane


def _server(context: Context, socket: str) -> str:
    """Return a socket's server as rows name it: by name if the name leads to this socket, else by path."""
    real = os.path.realpath(socket)
    for name in (context.environ.get("TMUX_SERVER_NAME"), os.path.basename(socket)):
        try:
            if name and os.path.realpath(context.tmux(parse_server(name)).socket_path()) == real:
                return name
        except InvalidName:
            continue
    return parse_server(socket)


def _row_in(context: Context, pane: Pane) -> Row | None:
    """Return the row of the session in a marked pane. A person may have typed the command into its shell."""
    if not pane.mark or not is_same_root(pane.root, context.root_mark):
        return None
    return context.registry.view().by_id(pane.mark)
