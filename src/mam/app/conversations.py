"""Conversations of a session: which one it has, which one a resume takes, who holds it."""

from __future__ import annotations

from mam.adapters.store.host import Lease
from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.core.errors import ConversationBusy
from mam.core.resume import Choice, choose
from mam.core.row import current_conversation, merged, own_id, own_id_field
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.app.world import World
    from mam.core.row import Row


def on_disk(world: World, row: Row, conversation: str | None) -> bool | None:
    """Tell whether a conversation of this session is on disk."""
    if not conversation:
        return None
    return world.kind(row["agent"]).on_disk(conversation, row["workspace"], row.get("stores") or {})


def resume_choice(world: World, row: Row, rows: Sequence[Row], identities: dict[str, Any]) -> Choice:
    """Return the conversation that a resume would take up."""
    kind = world.kind(row["agent"])
    stores = row.get("stores") or {}
    return choose(
        row,
        identities.get(row["agent"]),
        on_disk=lambda one: kind.on_disk(one, row["workspace"], stores),
        in_workspace=lambda: kind.conversations(row["workspace"], stores),
        is_taken=lambda one: _is_anothers(one, row, rows),
    )


def _is_anothers(conversation: str, row: Row, rows: Sequence[Row]) -> bool:
    return any(
        conversation == own_id(other)
        or any(one["id"] == conversation for one in other.get("conversations") or [])
        for other in rows
        if other.get("id") != row.get("id") and other["agent"] == row["agent"]
    )


def captured(world: World, row: Row, heard: str | None = None) -> Row:
    """Return the row with the conversation that it really has: as the agent's hook said, if it is on disk."""
    conversation = heard or current_conversation(row)
    if not conversation or not on_disk(world, row, conversation):
        return row
    known = row.get("conversations") or []
    if all(one["id"] != conversation for one in known):
        known = [*known, {"id": conversation, "source": "hook", "since": stamp(world.now())}]
    return merged(row, **{own_id_field(row["agent"]): conversation, "conversations": known})


def take_lease(world: World, row: Row, conversation: str | None, holder: Identity) -> None:
    """Hold a conversation for a session; refuse one that a live process of another session has."""
    if not conversation:
        return
    other = world.host.take(
        row["agent"], conversation, Lease(world.place.root, row["id"], holder.as_json()), _lives
    )
    if other is not None:
        raise ConversationBusy(
            f"conversation {conversation} is open in process {other.holder.get('pid')} (root {other.root})",
            hint="stop that session first, or start a new one",
        )


def _lives(holder: dict[str, Any]) -> bool:
    identity = Identity.from_json(holder)
    return identity is not None and process.is_alive(identity)
