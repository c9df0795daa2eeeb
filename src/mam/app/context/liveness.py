"""Finding the liveness of sessions: whether the pane and the process of a row exist.

A tmux server that does not answer makes a session unknown, never gone.
"""

from __future__ import annotations

import os

from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.core.liveness_values import Liveness
from mam.core.names import kind_of_name
from mam.core.root_mark import directory_of, id_of, is_same_root
from mam.core.root_state import RootState
from mam.core.session_row import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mam.adapters.store.registry import View
    from mam.adapters.tmux.parse import Listing, Pane
    from mam.app.context.context import Context
    from mam.core.session_row import Pane as RowPane
    from mam.core.session_row import Row

_NOT_OURS = "mam asks no tmux server that a root of somebody else names"


class SessionLiveness:
    """The liveness of one session, with the pane that was found and the reason for the state."""

    __slots__ = ("pane", "reason", "state")

    def __init__(self, state: Liveness, pane: Pane | None = None, reason: str = "") -> None:
        self.state = state
        self.pane = pane
        self.reason = reason


def identity_of(row: Row) -> Identity | None:
    """Return the process that the row records; None where the row does not record it fully."""
    pane = row.get("pane") or {}
    pid, start, boot = pane.get("pid"), pane.get("pid_start"), pane.get("boot_id")
    if not pid or start is None or not boot:
        return None
    return Identity(pid, start, process.recorded_boot(boot))


def judge_liveness(row: Row, listing: Listing, root: str) -> SessionLiveness:
    """Return the liveness of a session, by a listing of its tmux server; `root` is the mark of its root."""
    if not listing.confirmed:
        return SessionLiveness(Liveness.UNKNOWN, reason=listing.error or "the tmux server did not answer")
    marked = listing.marked(row.get("id"))
    if len(marked) == 1 and _is_plainly_alive(row["pane"], marked[0], root):
        return SessionLiveness(Liveness.ALIVE, marked[0])
    identity = identity_of(row)
    if marked and all(is_foreign(pane, root) for pane in marked):
        return SessionLiveness(
            Liveness.GONE, reason=f"the pane belongs to the root {directory_of(marked[0].root)}"
        )
    pane = find_pane(row, marked or ([] if identity else listing.panes))
    if pane is None:
        if identity and process.is_alive(identity):
            return SessionLiveness(Liveness.LOOSE, reason=f"process {identity.pid} lives without its pane")
        return SessionLiveness(Liveness.GONE, reason="no pane and no process")
    if pane.dead:
        return SessionLiveness(Liveness.DEAD, pane, "the process in the pane has ended")
    if identity and (pane.pid != identity.pid or not process.is_alive(identity)):
        if pane.pid == identity.pid:
            return SessionLiveness(Liveness.DEAD, pane, "the process in the pane has ended")
        return SessionLiveness(Liveness.GONE, pane, f"another process ({pane.pid}) is in the pane")
    return SessionLiveness(Liveness.ALIVE, pane)


def _is_plainly_alive(recorded: RowPane, pane: Pane, root: str) -> bool:
    """Tell quickly that a session is alive, which holds for nearly every session of a long listing.

    tmux still holds this process as its child, so the kernel cannot have given the pid to another process.
    The process may only have ended without tmux having noticed.
    """
    return (
        pane.pid == recorded.get("pid")
        and not pane.dead
        and (not pane.root or is_same_root(pane.root, root))
        and recorded.get("boot_id") == process.boot_id()
        and process.runs(pane.pid) is True
    )


def is_foreign(pane: Pane, root: str) -> bool:
    """Tell whether a marked pane belongs to another root, of which this root is a copy.

    A root that was moved is not another root: it has the same id. In a pane that mam 0.1 marked without an
    id, its old directory has no `.mam` any more.
    """
    if not pane.root or is_same_root(pane.root, root):
        return False
    return id_of(pane.root) is not None or os.path.isdir(os.path.join(pane.root, ".mam"))


def find_pane(row: Row, panes: Iterable[Pane]) -> Pane | None:
    """Return the pane with the session's mark; for a row without a process identity, by name and pid."""
    marked = [pane for pane in panes if pane.mark and pane.mark == row.get("id")]
    if marked:
        recorded = (row.get("pane") or {}).get("id")
        return next((pane for pane in marked if pane.id == recorded), marked[0])
    if identity_of(row) is not None:
        return None
    pid = (row.get("pane") or {}).get("pid")
    # Without a pid the name must have the pattern of the original tool. Any other name may be a tmux session
    # that a person made.
    if not pid and kind_of_name(row["name"]) is None:
        return None
    # A pane with a mark belongs to another session, which may have the same name in another root.
    return next(
        (
            pane
            for pane in panes
            if pane.session_name == row["name"] and (not pid or pane.pid == pid) and not pane.mark
        ),
        None,
    )


def request_listings(context: Context) -> dict[str, Callable[[], Listing]]:
    """Ask every tmux server of a running session for its panes, before the sessions are read.

    The result holds a function for each server that waits for the listing and returns it.
    """
    # In a copy the marks of the panes count, which a brief listing does not show.
    if not context.may_look or context.root.verdict().state == RootState.COPY:
        return {}
    return {server: context.tmux(server).ask_briefly() for server in context.registry.servers()}


def check_all_liveness(
    context: Context,
    rows: Iterable[Row],
    *,
    full: bool = False,
    requests: dict[str, Callable[[], Listing]] | None = None,
    view: View | None = None,
) -> dict[str, SessionLiveness]:
    """Return the liveness of each session by name, with one tmux call per server; `full` panes have titles.

    `requests` are the listings of `request_listings`. Every other server is asked now. So is a server with a
    session that is found by its name, because a brief listing does not show names. With the `view` from which
    the rows are, judge the statuses that a person wrote into its file.
    """
    rows = list(rows)
    if not context.may_look:
        return {row["name"]: SessionLiveness(Liveness.UNKNOWN, reason=_NOT_OURS) for row in rows}
    edited_rows = view.status_edits.rows if view is not None and view.status_edits is not None else []
    by_name = {row["tmux_server"] for row in [*rows, *edited_rows] if not row["pane"].get("boot_id")}
    listings = {server: collect() for server, collect in (requests or {}).items()}
    for server in {row["tmux_server"] for row in [*rows, *edited_rows]} - (listings.keys() - by_name):
        listings[server] = context.tmux(server).panes(full)
    # Once for all rows: the mark is looked up with several calls of the file system.
    mark = context.root_mark
    if view is not None:
        context.judge_status_edits(
            view, lambda row, status: _agrees(judge_liveness(row, listings[row["tmux_server"]], mark), status)
        )
    return {row["name"]: judge_liveness(row, listings[row["tmux_server"]], mark) for row in rows}


def check_liveness(context: Context, row: Row) -> SessionLiveness:
    """Return the liveness of one session."""
    if not context.may_look:
        return SessionLiveness(Liveness.UNKNOWN, reason=_NOT_OURS)
    return judge_liveness(row, context.tmux(row["tmux_server"]).panes(), context.root_mark)


def confirm(context: Context, row: Row, status: str) -> bool | None:
    """Tell whether a status that a person wrote into the YAML file is true; None where tmux cannot tell."""
    return _agrees(check_liveness(context, row), status)


def _agrees(liveness: SessionLiveness, status: str) -> bool | None:
    if liveness.state == Liveness.UNKNOWN:
        return None
    return (liveness.state == Liveness.ALIVE) == (
        status == Status.RUNNING
    ) and liveness.state != Liveness.LOOSE
