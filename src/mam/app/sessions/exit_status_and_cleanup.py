"""What is left to do after the end of a session's process: exit status, launch files and secrets, mark."""

from __future__ import annotations

import os
import time

from mam.adapters.store import launch_secret
from mam.adapters.system import load_adjusted_clock, process
from mam.adapters.tmux.launch_file import cancel_launch
from mam.core.errors import PaneGone
from mam.core.liveness_values import Liveness
from mam.core.root_mark import is_same_root
from mam.core.session_row import Status

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
    """End the launch secrets that are left because a process died between the end of a session and this.

    A session without a row may run all the same, if the database was lost: its secret stays while any process
    carries it, so that `mam restore` can take the session back.
    """
    files = context.user_state.secret_files(context.root_id)
    sessions = context.registry.peek(_sessions, None) if files else None
    if sessions is None:
        return
    in_use, known = sessions
    ended = [files[session_id] for session_id in files.keys() & (known - in_use)]
    unknown = {files[session_id] for session_id in files.keys() - known - in_use}
    ended += _without_process(context, unknown) if unknown else []
    if ended:
        context.user_state.end_secrets(ended)


def _sessions(transaction: Transaction) -> tuple[set[str], set[str]] | None:
    """Return the sessions that run or that another process changes now and may have started; and all."""
    rows = transaction.connection.execute("SELECT id, status FROM sessions").fetchall()
    running = {session_id for session_id, status in rows if status == Status.RUNNING}
    changed = {intent.session_id for intent in transaction.intents.all()}
    return running | changed, {session_id for session_id, _ in rows}


def _without_process(context: Context, files: set[str]) -> list[str]:
    """Return the files of secrets that no live process carries, and whose recorded process has ended."""
    carried = {value for value, _ in process.carriers(launch_secret.VARIABLE, 0).values()}
    return [file for file in files - carried if not _is_alive(context.user_state.process_of(file))]


def _is_alive(record: object) -> bool:
    identity = process.Identity.from_json(record)
    return identity is not None and process.is_alive(identity)
