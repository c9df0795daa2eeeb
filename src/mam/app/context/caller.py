"""Finding out who calls: a session only if its own process is an ancestor of the calling one."""

from __future__ import annotations

from mam.core import caller as callers
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def find_caller(context: Context, pid: int) -> Caller:
    """Return who calls by this process: the session that it runs in, or a person."""
    if not context.environ.get("MAM_SESSION") and not context.environ.get("TMUX_PANE"):
        return callers.user(pid)
    return _caller_among(context, context.registry.view().rows, pid)


def find_reporter(context: Context, pid: int) -> Caller:
    """Return the same for a report, which must get through where the registry's file cannot be read.

    The rows are those of the database; of a session that is claimed only its own.
    """
    claimed = context.environ.get("MAM_SESSION")
    if not claimed and not context.environ.get("TMUX_PANE"):
        return callers.user(pid)
    none: list[Row] = []
    rows = context.registry.peek(
        lambda draft: [row] if claimed and (row := draft.get(claimed)) else draft.rows(), none
    )
    return _caller_among(context, rows, pid)


def calling_row(context: Context, caller: Caller) -> Row | None:
    """Return the row of the session that calls; None where no session does."""
    if caller.session_id is None:
        return None
    return context.registry.view().by_id(caller.session_id)


def _caller_among(context: Context, rows: list[Row], pid: int) -> Caller:
    claimed, pane = context.environ.get("MAM_SESSION"), context.environ.get("TMUX_PANE")
    if claimed:
        found = [row for row in rows if row.get("id") == claimed]
    else:
        # An agent that was started by hand, and registered since, has only its pane; a pane of another
        # server may be called the same.
        found = [row for row in rows if pane and is_running(row) and row["pane"].get("id") == pane]
    row = next((row for row in found if runs_inside(row, pid)), None)
    return callers.session(row["id"], pid) if row else callers.user(pid)


def runs_inside(row: Row, pid: int) -> bool:
    """Tell whether a process is a descendant of the session's process."""
    from mam.adapters.system import process

    pane = row.get("pane") or {}
    identity = (pane.get("pid"), pane.get("pid_start"), pane.get("boot_id"))
    return any((one.pid, one.start, one.boot) == identity for one in process.ancestors(pid))
