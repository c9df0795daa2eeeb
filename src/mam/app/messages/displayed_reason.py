"""The reason for the state of a message, as receipts and the inbox show it."""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.core.message_rules import MessageState, ReasonCode, behind_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.message_rules import Reason


def displayed_reason(transaction: Transaction, message: Message) -> str | None:
    """Return the reason for the state of a message, as plain text."""
    reason = _reason(transaction, message)
    return None if reason is None else str(reason)


def reason_code(context: Context, message_id: str) -> str | None:
    """Return the code of the reason that is displayed for a message; None if it has no code."""

    def read(transaction: Transaction) -> str | None:
        message = messages.find(transaction, message_id)
        reason = _reason(transaction, message) if message is not None else None
        return None if reason is None else reason.code

    return context.registry.peek(read, None)


def _reason(transaction: Transaction, message: Message) -> Reason | None:
    """Return the reason of a message; for one that was not tried yet, what holds the first one."""
    if (message.state, message.reason_code) != (MessageState.HELD, ReasonCode.NOT_TRIED):
        return message.reason
    first = messages.first_open(transaction, message.session_id) or message
    if first.reason is None or first.reason_code == ReasonCode.NOT_TRIED:
        return message.reason
    return behind_reason(first.id, first.reason)
