"""Finding out who calls: a session only if its process is an ancestor of the calling process."""

from __future__ import annotations

from mam.core import caller as callers
from mam.core.errors import RootUnsafe
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def find_caller(context: Context, pid: int) -> Caller:
    """Return the session in which a process runs; the user where it runs in no session."""
    if not context.environ.get("MAM_SESSION") and not context.environ.get("TMUX_PANE"):
        return callers.user(pid)
    try:
        # A verb that only looks works beside a registry file that mam refuses; a change checks the file
        # itself.
        rows = context.registry.view_to_show().rows
    except RootUnsafe:
        # Whoever could have written the rows does not decide who calls. `init` works below such a root.
        return callers.user(pid)
    return _caller_among(context, rows, pid)


def find_reporter(context: Context, pid: int) -> Caller:
    """Return the caller of a report, which must succeed even where the YAML file cannot be read.

    The rows come from the database: only the row that `MAM_SESSION` names, or all of them without it.
    """
    claimed = context.environ.get("MAM_SESSION")
    if not claimed and not context.environ.get("TMUX_PANE"):
        return callers.user(pid)
    none: list[Row] = []
    rows = context.registry.peek(
        lambda transaction: [row] if claimed and (row := transaction.get(claimed)) else transaction.rows(),
        none,
    )
    return _caller_among(context, rows, pid)


def calling_row(context: Context, caller: Caller) -> Row | None:
    """Return the row of the calling session; None where the caller is no session."""
    if caller.session_id is None:
        return None
    return context.registry.view_to_show().by_id(caller.session_id)


def _caller_among(context: Context, rows: list[Row], pid: int) -> Caller:
    claimed, pane = context.environ.get("MAM_SESSION"), context.environ.get("TMUX_PANE")
    if claimed:
        candidates = [row for row in rows if row.get("id") == claimed]
    else:
        # An agent that a person started by hand and registered later has no MAM_SESSION, only its pane.
        # tmux numbers the panes of each server from %0, so several rows may have the same pane id.
        candidates = [row for row in rows if pane and is_running(row) and row["pane"].get("id") == pane]
    row = next((row for row in candidates if runs_inside(row, pid)), None)
    return callers.session(row["id"], pid) if row else callers.user(pid)


def runs_inside(row: Row, pid: int) -> bool:
    """Tell whether a process is a descendant of the session's process."""
    from mam.adapters.system import process

    pane = row.get("pane") or {}
    identity = (pane.get("pid"), pane.get("pid_start"), pane.get("boot_id"))
    return any(
        (ancestor.pid, ancestor.start, ancestor.boot) == identity for ancestor in process.ancestors(pid)
    )
