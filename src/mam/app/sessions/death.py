"""Record in the row that the process of a session is gone."""

from __future__ import annotations

import time

from mam.adapters.system import load_adjusted_clock
from mam.app.context import claims
from mam.app.context.liveness import check_liveness
from mam.app.observation import conversations
from mam.app.sessions import launch
from mam.core import session_transitions
from mam.core.errors import MamError, PaneGone
from mam.core.liveness_values import Liveness
from mam.core.session_event import Died
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.context.liveness import SessionLiveness
    from mam.core.caller import Caller
    from mam.core.session_row import Row

# tmux may report a pane as dead a moment before it knows the exit status.
_STATUS_SECONDS = 1.0


def record_if_dead(context: Context, caller: Caller, row: Row, error: MamError | None = None) -> Row:
    """Check the session; if its process is gone, record that and return the new row."""
    sight = check_liveness(context, row)
    if sight.state not in (Liveness.DEAD, Liveness.GONE):
        return row
    new_row = record_death(context, caller, row, sight)
    if error is not None:
        error.session = new_row
    return new_row


def record_death(context: Context, caller: Caller, row: Row, sight: SessionLiveness) -> Row:
    """Record that the process of a session is gone, and return the new row."""
    status = exit_status(context, row, sight)
    named_conversation = conversations.reported_conversation(context, row)

    def work(transaction: Transaction) -> Row:
        current = transaction.get(row["id"]) or row
        if not is_running(current) or not claims.is_free(transaction, row["id"], row["name"]):
            # The session ended already, or another process is ending it and records that.
            return current
        launch.discard_launch_files(context, row["id"])
        captured_row = conversations.with_conversation(context, current, named_conversation, transaction.rows)
        on_disk = bool(conversations.on_disk(context, captured_row, current_conversation(captured_row)))
        new_row = transaction.put(
            session_transitions.died(
                captured_row,
                {**caller.action("died", context.now()), "by": "mam"},
                on_disk=on_disk,
                exit_status=status,
            )
        )
        context.publish(transaction, Died(new_row, status))
        transaction.log(caller.name, "died", new_row, sight.reason, exit_status=status)
        return new_row

    new_row = claims.change(context, work)
    if not is_running(new_row):
        launch.unmark_reused_pane(context, row, sight.pane)
    return new_row


def exit_status(context: Context, row: Row, sight: SessionLiveness) -> int | None:
    """Return the exit status that tmux kept for a dead pane; a signal counts as 128 plus its number."""
    pane = sight.pane
    if pane is None or sight.state != Liveness.DEAD:
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
