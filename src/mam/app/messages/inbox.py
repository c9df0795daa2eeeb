"""The verb `inbox`: the messages to a session, or of a sender, and what became of each. Reads only."""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.app.messages.displayed_reason import displayed_reason
from mam.core.message_rules import MessageState
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.caller import Caller


def inbox(
    context: Context,
    caller: Caller,
    target: str | None,
    *,
    sent: bool = False,
    parked: bool = False,
    limit: int = 50,
) -> list[dict[str, Any]]:
    """Return the last messages to a session; with `sent` those that the target, or else the caller, sent.

    With `parked`, only parked messages; without a target those of every session.
    """
    view = context.view_to_show()
    names = {row.get("id"): row["name"] for row in view.rows}
    filters: dict[str, str]
    if sent:
        filters = {"sender": view.find(target)["id"] if target else caller.name}
    elif parked and target is None:
        filters = {}
    else:
        filters = {"session_id": view.find(target or "")["id"]}

    def read(transaction: Transaction) -> list[dict[str, Any]]:
        listed = messages.listed(transaction, limit=limit, only_parked=parked, **filters)
        return [_as_json(transaction, message, names) for message in listed]

    nothing: list[dict[str, Any]] = []
    return context.registry.peek(read, nothing)


def _as_json(transaction: Transaction, message: Message, names: dict[Any, str]) -> dict[str, Any]:
    return {
        "message_id": message.id,
        "session": names.get(message.session_id, message.session_id),
        "sender": names.get(message.sender, message.sender),
        "state": MessageState.HELD if message.state == MessageState.TYPING else message.state,
        "reason": displayed_reason(transaction, message),
        "evidence": message.evidence,
        "carrier": message.carrier,
        "attempts": message.attempts,
        "text": message.text,
        "sent_at": stamp(message.created_at),
        "changed_at": stamp(message.changed_at),
    }
