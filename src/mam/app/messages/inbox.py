"""What was sent to a session, or by somebody, and what became of each message. Reads only."""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.core.message import NOT_TRIED, MessageState, behind
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.messages import Message
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller


def inbox(
    context: Context, caller: Caller, target: str | None, *, sent: bool = False, limit: int = 50
) -> list[dict[str, Any]]:
    """Return the last messages to a session; with `sent` those that it, or the caller, has sent."""
    view = context.registry.view()
    names = {row.get("id"): row["name"] for row in view.rows}
    whose: dict[str, str]
    if sent:
        whose = {"sender": view.find(target)["id"] if target else caller.name}
    else:
        whose = {"session_id": view.find(target or "")["id"]}

    def read(draft: Transaction) -> list[dict[str, Any]]:
        return [_shown(draft, one, names) for one in messages.listed(draft, limit=limit, **whose)]

    nothing: list[dict[str, Any]] = []
    return context.registry.peek(read, nothing)


def reason_of(draft: Transaction, one: Message) -> str | None:
    """Return why a message stands as it does; of one that was not tried, why not."""
    if (one.state, one.reason) != (MessageState.HELD, NOT_TRIED):
        return one.reason
    first = next(iter(messages.open_of(draft, one.session_id)), one)
    return one.reason if first.reason in (None, NOT_TRIED) else behind(first.id, first.reason)


def _shown(draft: Transaction, one: Message, names: dict[Any, str]) -> dict[str, Any]:
    return {
        "message_id": one.id,
        "session": names.get(one.session_id, one.session_id),
        "sender": names.get(one.sender, one.sender),
        "state": MessageState.HELD if one.state == MessageState.TYPING else one.state,
        "reason": reason_of(draft, one),
        "evidence": one.evidence,
        "carrier": one.carrier,
        "attempts": one.attempts,
        "text": one.text,
        "sent_at": stamp(one.created_at),
        "changed_at": stamp(one.changed_at),
    }
