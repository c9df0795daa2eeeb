"""What is left to do after the end of a session's process: exit status, launch files and secrets, mark."""

from __future__ import annotations

import os
import time

from mam.adapters.system import load_adjusted_clock
from mam.adapters.tmux.launch_file import cancel_launch
from mam.core.errors import PaneGone
from mam.core.liveness_values import Liveness
from mam.core.root_mark import is_same_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.app.context.liveness import SessionLiveness
    from mam.core.session_row import Row

# tmux may report a pane as dead a moment before it knows the exit status.
_STATUS_SECONDS = 1.0


def exit_status(context: Context, row: Row, liveness: SessionLiveness) -> int | None:
    """Return the exit status that tmux kept for a dead pane; a signal counts as 128 plus its number."""
    pane = liveness.pane
    if pane is None or liveness.state != Liveness.DEAD:
        return None
    if pane.dead_status is None and pane.dead_signal is None:
        try:
            deadline = time.monotonic() + load_adjusted_clock.stretched(_STATUS_SECONDS)
            pane = context.tmux(row["tmux_server"]).dead_status(pane.id, pane.server_pid, deadline)
        except PaneGone:
            return None
    return pane.dead_status if pane.dead_status is not None else _from_signal(pane.dead_signal)


def _from_signal(number: int | None) -> int | None:
    return None if number is None else 128 + number


def unmark_reused_pane(context: Context, row: Row, pane: Pane | None) -> None:
    """Remove the mark from a pane in which somebody started another process. It can then be adopted."""
    is_ours = pane is not None and pane.mark == row["id"] and is_same_root(pane.root, context.root_mark)
    if pane is None or not is_ours or pane.dead or pane.pid == row["pane"].get("pid"):
        return
    try:
        context.tmux(row["tmux_server"]).unmark(pane.id, row["id"])
    except PaneGone:
        # The pane is closed, so there is no mark to remove.
        return


def discard_launch_files(context: Context, session_id: str) -> None:
    """Remove the launch files of a session that ended before its launcher read them."""
    try:
        names = os.listdir(context.paths.launches)
    except OSError:
        return
    for name in names:
        if name.startswith(f"{session_id}-"):
            cancel_launch(os.path.join(context.paths.launches, name))


def end_secrets_of_ended_sessions(context: Context) -> None:
    """End the launch secrets that are left because a process died between the end of a session and this."""
    files = context.user_state.secret_files(context.root_id)
    in_use = context.registry.peek(_launched_sessions, None) if files else None
    if in_use is not None and (ended := files.keys() - in_use):
        context.user_state.end_secrets([files[session_id] for session_id in ended])


def _launched_sessions(transaction: Transaction) -> set[str] | None:
    """Return the sessions that run, and those that another process changes now and may have started."""
    running = transaction.connection.execute("SELECT id FROM sessions WHERE status='running'")
    return {session_id for (session_id,) in running} | {
        intent.session_id for intent in transaction.intents.all()
    }
