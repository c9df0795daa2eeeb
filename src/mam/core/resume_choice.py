"""Choose the conversation that a resume continues: the first of three tiers that exists on disk."""

from __future__ import annotations

from mam.core.session_row import current_conversation, own_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from mam.core.session_row import Row

OWN, WORKSPACE, CACHE = 1, 2, 3


class Choice:
    """The chosen conversation. Tier None with `on_disk` False is an id without a conversation on disk yet."""

    __slots__ = ("id", "on_disk", "tier")

    def __init__(self, conversation: str | None, tier: int | None, on_disk: bool | None) -> None:
        self.id = conversation
        self.tier = tier
        self.on_disk = on_disk

    def as_json(self) -> dict[str, Any]:
        """Return the choice as `ls` and `status` show it."""
        return {"id": self.id, "tier": self.tier, "on_disk": self.on_disk}


def choose(
    row: Row,
    identity: dict[str, Any] | None,
    *,
    on_disk: Callable[[str], bool | None],
    in_workspace: Callable[[], Iterable[str]],
    is_taken: Callable[[str], bool],
) -> Choice:
    """Return the conversation to continue.

    Tier 1 is the row's own conversation. Tier 2 is the newest one of the workspace that no other session
    ever had. Tier 3 is the cached one, if the cache belongs to this workspace.
    """
    if row.get("termination_mode") == "purge":
        return Choice(None, None, None)
    own = own_id(row) or current_conversation(row)
    own_on_disk = on_disk(own) if own else None
    if own and own_on_disk:
        return Choice(own, OWN, True)
    if not own:
        for candidate in in_workspace():
            if not is_taken(candidate):
                return Choice(candidate, WORKSPACE, True)
    cached = _cached(identity or {}, row["workspace"])
    if cached and not own and not is_taken(cached) and on_disk(cached):
        return Choice(cached, CACHE, True)
    return Choice(own, None, own_on_disk)


def _cached(identity: dict[str, Any], workspace: str) -> str | None:
    if identity.get("project_cwd") != workspace:
        return None
    return identity.get("session_id") or identity.get("conversation_id")
