"""The reason for the state of a message, as receipts and the inbox show it."""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.core.message_rules import MessageState, ReasonCode, behind_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.core.message_rules import Reason


def reason_of(transaction: Transaction, message: Message) -> Reason | None:
    """Return the reason for the state of a message; for one that was not tried, what holds the first one."""
    if (message.state, message.reason_code) != (MessageState.HELD, ReasonCode.NOT_TRIED):
        return message.reason
    first = next(iter(messages.open_of(transaction, message.session_id)), message)
    if first.reason is None or first.reason_code == ReasonCode.NOT_TRIED:
        return message.reason
    return behind_reason(first.id, first.reason)
