"""The end of the messages that were meant for one launch of a session.

A message that is open when its session is purged, started anew, closed or forgotten is for an agent that
does not come back. The verb ends it in its own transaction, so that no crash leaves it to the next agent.
A resume continues the conversation, and keeps the messages.
"""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.core.message_rules import NOT_TRIED, MessageState, Reason, ReasonCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.core.session_row import Row

_MOST_HELD_AGAIN = 1000


def end_messages_of_former_launch(transaction: Transaction, row: Row, *, by: str) -> None:
    """End the open messages of a session that was started anew."""
    end_messages(transaction, row, f"'{row['name']}' was started anew", by=by, code=ReasonCode.STARTED_ANEW)


def hold_again(transaction: Transaction, row: Row, since: float) -> None:
    """Hold the messages again that a new start ended since then, because the new start is undone."""
    for message in messages.listed(transaction, session_id=row["id"], limit=_MOST_HELD_AGAIN):
        is_ended_by_start = message.reason_code == ReasonCode.STARTED_ANEW and message.changed_at >= since
        if message.state == MessageState.FAILED and is_ended_by_start:
            messages.update(transaction, message.id, state=MessageState.HELD, reason=NOT_TRIED)


def end_messages(
    transaction: Transaction,
    row: Row,
    event: str,
    *,
    by: str,
    code: ReasonCode | None = None,
    also_parked: bool = False,
) -> None:
    """End the open messages of a session; `event` says what happened to it, in a sentence.

    A held message has failed. Of one that is being typed nobody can say that, so it is unconfirmed: its proof
    may still come. `also_parked` is for a session that nobody can release a message to any more.
    """
    unended = messages.unended_of(transaction, row["id"])
    for message in unended:
        if message.state == MessageState.PARKED and not also_parked:
            continue
        is_held = message.state != MessageState.TYPING
        state = MessageState.FAILED if is_held else MessageState.UNCONFIRMED
        reason = Reason(f"{event} {'before it was typed' if is_held else 'while it was being typed'}", code)
        messages.update(transaction, message.id, state=state, reason=reason, owner=None)
        transaction.log(by, "send", row, reason, message=message.id, state=state)
