"""What was sent to a session, or by somebody, and what became of each message. Reads only."""

from __future__ import annotations

from mam.adapters.store import messages
from mam.app import caller
from mam.core.message import HELD, TYPING
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.messages import Message
    from mam.app.world import World


def inbox(world: World, target: str | None, *, sent: bool = False, limit: int = 50) -> list[dict[str, Any]]:
    """Return the last messages to a session; with `sent` those that it, or the caller, has sent."""
    view = world.registry.view()
    names = {row.get("id"): row["name"] for row in view.rows}
    if sent:
        sender = view.find(target)["id"] if target else caller.actor(world)
        found = world.registry.peek(
            lambda draft: messages.listed(draft, sender=sender, limit=limit), _NOTHING
        )
    else:
        session_id = view.find(target or "")["id"]
        found = world.registry.peek(
            lambda draft: messages.listed(draft, session_id=session_id, limit=limit), _NOTHING
        )
    return [_shown(one, names) for one in found]


_NOTHING: list[Message] = []


def _shown(one: Message, names: dict[Any, str]) -> dict[str, Any]:
    return {
        "message_id": one.id,
        "session": names.get(one.session_id, one.session_id),
        "sender": names.get(one.sender, one.sender),
        "state": HELD if one.state == TYPING else one.state,
        "reason": one.reason,
        "evidence": one.evidence,
        "carrier": one.carrier,
        "attempts": one.attempts,
        "text": one.text,
        "sent_at": stamp(one.created_at),
        "changed_at": stamp(one.changed_at),
    }
