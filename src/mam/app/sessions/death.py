"""Record in the row that the process of a session is gone."""

from __future__ import annotations

from mam.app.context import claims
from mam.app.context.liveness import check_liveness
from mam.app.jobs.command_end import end_in_pane, end_of_session
from mam.app.messages.late_proof import settle_queue
from mam.app.observation import conversations
from mam.app.sessions import exit_status_and_cleanup
from mam.core import session_transitions
from mam.core.errors import MamError
from mam.core.liveness_values import Liveness
from mam.core.session_event import Died
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.context.liveness import SessionLiveness
    from mam.core.caller import Caller
    from mam.core.session_row import Action, Row


def record_if_dead(context: Context, caller: Caller, row: Row, error: MamError | None = None) -> Row:
    """Check the session; if its process is gone, record that and return the new row."""
    liveness = check_liveness(context, row)
    if liveness.state not in (Liveness.DEAD, Liveness.GONE):
        return row
    new_row = record_death(context, caller, row, liveness)
    if error is not None:
        error.session = new_row
    return new_row


def record_death(context: Context, caller: Caller, row: Row, liveness: SessionLiveness) -> Row:
    """Record that the process of a session is gone, and return the new row."""
    status = exit_status_and_cleanup.exit_status(context, row, liveness)
    named_conversation = conversations.reported_conversation(context, row)

    def work(transaction: Transaction) -> Row:
        current = transaction.get(row["id"]) or row
        if (
            not is_running(current)
            or not claims.is_free(transaction, row["id"], row["name"])
            or claims.is_being_ended(transaction, row["id"])
        ):
            # The session ended already, or a stop is ending it: that, or its recovery, records the end.
            return current
        exit_status_and_cleanup.discard_launch_files(context, row["id"])
        captured_row = conversations.with_conversation(context, current, named_conversation, transaction.rows)
        end = end_of_session(context, transaction, captured_row) or end_in_pane(captured_row, status)
        verb = "died" if end is None else "ended"
        new_row = transaction.put(
            row_after_death(
                context,
                captured_row,
                verb,
                exit_status=status,
                is_success=end is not None and end.is_success,
            )
        )
        context.tell_listeners(transaction, Died(new_row, status))
        reason = liveness.reason if end is None else end.detail("")
        transaction.log(caller.name, verb, new_row, reason, exit_status=status)
        return new_row

    new_row = claims.change(context, work)
    if not is_running(new_row):
        context.user_state.release(new_row["id"], context.root_id)
        exit_status_and_cleanup.unmark_reused_pane(context, row, liveness.pane)
        settle_queue(context, new_row["id"])
    return new_row


def row_after_death(
    context: Context, row: Row, verb: str, *, exit_status: int | None = None, is_success: bool = False
) -> Row:
    """Return the row that a session has once its process is gone. `row` names its last conversation."""
    on_disk = bool(conversations.on_disk(context, row, current_conversation(row)))
    action: Action = {"by": "mam", "verb": verb, "at_epoch": int(context.now())}
    return session_transitions.died(
        row, action, on_disk=on_disk, exit_status=exit_status, is_success=is_success
    )
