"""Who did what to which session, when, and why. Reads only."""

from __future__ import annotations

import json

from mam.adapters.store import database
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.world import World


def log(
    world: World, target: str | None = None, *, limit: int = 50, since: float | None = None
) -> list[dict[str, Any]]:
    """Return the newest entries, oldest first; those of one session by its id or any name it had."""
    connection = world.registry.reader()
    if connection is None:
        return []
    session_id = next(
        (row.get("id") for row in world.registry.view().rows if target in (row["name"], row.get("id"))), None
    )
    with database.errors(world.place.db):
        found = connection.execute(
            "SELECT seq, at, actor, verb, session_id, name, reason, detail FROM log"
            " WHERE (:target IS NULL OR session_id IN (:id, :target) OR name=:target) AND at >= :since"
            " ORDER BY seq DESC LIMIT :limit",
            {
                "target": target,
                "id": session_id,
                "since": world.now() - since if since is not None else 0,
                "limit": limit,
            },
        ).fetchall()
    if target is not None and session_id is None and not found:
        raise world.registry.unknown(target)
    names = {row.get("id"): row["name"] for row in world.registry.view().rows}
    return [
        {
            "seq": seq,
            "at": stamp(at),
            "by": names.get(actor, actor),
            "verb": verb,
            "session": name,
            "session_id": of,
            "reason": reason,
            "detail": json.loads(detail),
        }
        for seq, at, actor, verb, of, name, reason, detail in reversed(found)
    ]
