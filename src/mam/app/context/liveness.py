"""What is really there of a session: its pane, its process, or that nobody can say.

An empty or failed answer is unknown and never absent.
"""

from __future__ import annotations

import os

from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.core.liveness import Liveness
from mam.core.names import kind_of_name
from mam.core.session_row import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.adapters.tmux.parse import Listing, Pane
    from mam.app.context.context import Context
    from mam.core.session_row import Pane as RowPane
    from mam.core.session_row import Row


class Sight:
    """One look at one session."""

    __slots__ = ("pane", "reason", "state")

    def __init__(self, state: Liveness, pane: Pane | None = None, reason: str = "") -> None:
        self.state = state
        self.pane = pane
        self.reason = reason


def identity_of(row: Row) -> Identity | None:
    """Return the process that the row remembers; None for a row that never said."""
    pane = row.get("pane") or {}
    pid, start, boot = pane.get("pid"), pane.get("pid_start"), pane.get("boot_id")
    if not pid or start is None or not boot:
        return None
    return Identity(pid, start, boot)


def see(row: Row, listing: Listing, root: str) -> Sight:
    """Return what one listing of its server says about a session of a root."""
    if not listing.confirmed:
        return Sight(Liveness.UNKNOWN, reason=listing.error or "the tmux server did not answer")
    marked = listing.marked(row.get("id"))
    if len(marked) == 1 and _is_plainly_alive(row["pane"], marked[0], root):
        return Sight(Liveness.ALIVE, marked[0])
    identity = identity_of(row)
    if marked and all(is_foreign(pane, root) for pane in marked):
        return Sight(Liveness.GONE, reason=f"its pane belongs to the root {marked[0].root}")
    pane = find_pane(row, marked or ([] if identity else listing.panes))
    if pane is None:
        if identity and process.is_alive(identity):
            return Sight(Liveness.LOOSE, reason=f"process {identity.pid} lives without its pane")
        return Sight(Liveness.GONE, reason="no pane and no process")
    if pane.dead:
        return Sight(Liveness.DEAD, pane, "the process in the pane has ended")
    if identity and (pane.pid != identity.pid or not process.is_alive(identity)):
        if pane.pid == identity.pid:
            return Sight(Liveness.DEAD, pane, "the process in the pane has ended")
        return Sight(Liveness.GONE, pane, f"another process ({pane.pid}) is in the pane")
    return Sight(Liveness.ALIVE, pane)


def _is_plainly_alive(recorded: RowPane, pane: Pane, root: str) -> bool:
    """Tell in the fewest steps what holds for nearly every session of a long listing.

    The server that carries our mark still holds this child, so the pid is nobody else's; it may only
    have ended unnoticed.
    """
    return (
        pane.pid == recorded.get("pid")
        and not pane.dead
        and pane.root in ("", root)
        and recorded.get("boot_id") == process.boot_id()
        and process.runs(pane.pid) is True
    )


def is_foreign(pane: Pane, root: str) -> bool:
    """Tell whether a marked pane is another root's: ours is a copy. A root that moved is no other."""
    return pane.root not in ("", root) and os.path.isdir(os.path.join(pane.root, ".mam"))


def find_pane(row: Row, panes: Iterable[Pane]) -> Pane | None:
    """Return the pane that carries the session's mark; a row without an id goes by name and pid."""
    marked = [pane for pane in panes if pane.mark and pane.mark == row.get("id")]
    if marked:
        recorded = (row.get("pane") or {}).get("id")
        return next((pane for pane in marked if pane.id == recorded), marked[0])
    if identity_of(row) is not None:
        return None
    pid = (row.get("pane") or {}).get("pid")
    # Without a pid the name must be of the original's pattern: any other may be a session of a person's own.
    if not pid and kind_of_name(row["name"]) is None:
        return None
    return next(
        (pane for pane in panes if pane.session_name == row["name"] and (not pid or pane.pid == pid)), None
    )


def ask_early(context: Context) -> dict[str, Callable[[], Listing]]:
    """Start asking every server that a running session names, before the sessions are read."""
    return {server: context.tmux(server).ask_briefly() for server in context.registry.servers()}


def see_all(
    context: Context,
    rows: Iterable[Row],
    *,
    full: bool = False,
    asked: dict[str, Callable[[], Listing]] | None = None,
) -> dict[str, Sight]:
    """Return what is there of each session, with one tmux call per server; `full` panes have titles.

    What was asked early is collected; a server that nobody asked is asked now, and so is one with a
    session that goes by its name, which a brief listing does not show.
    """
    rows = list(rows)
    by_name = {row["tmux_server"] for row in rows if not row["pane"].get("boot_id")}
    listings = {server: collect() for server, collect in (asked or {}).items()}
    for server in {row["tmux_server"] for row in rows} - (listings.keys() - by_name):
        listings[server] = context.tmux(server).panes(full)
    return {row["name"]: see(row, listings[row["tmux_server"]], context.paths.root) for row in rows}


def see_one(context: Context, row: Row) -> Sight:
    """Return what is there of one session."""
    return see(row, context.tmux(row["tmux_server"]).panes(), context.paths.root)


def confirm(context: Context, row: Row, status: str) -> bool | None:
    """Tell whether a status that somebody wrote by hand is what is there."""
    sight = see_one(context, row)
    if sight.state == Liveness.UNKNOWN:
        return None
    return (sight.state == Liveness.ALIVE) == (status == Status.RUNNING) and sight.state != Liveness.LOOSE
