"""Who did what to which session, when, and why. Reads only."""

from __future__ import annotations

from mam.adapters.store import database
from mam.adapters.store.tables import log as entries
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context


def log(
    context: Context, target: str | None = None, *, limit: int = 50, since: float | None = None
) -> list[dict[str, Any]]:
    """Return the newest entries, oldest first; those of one session by its id or any name it had."""
    connection = context.registry.reader()
    if connection is None:
        return []
    session_id = next(
        (row.get("id") for row in context.registry.view().rows if target in (row["name"], row.get("id"))),
        None,
    )
    oldest = context.now() - since if since is not None else 0.0
    with database.errors(context.paths.db):
        found = entries.newest(connection, target, session_id, since=oldest, limit=limit)
    if target is not None and session_id is None and not found:
        raise context.registry.unknown(target)
    names = {row.get("id"): row["name"] for row in context.registry.view().rows}
    return [
        {
            "seq": one["seq"],
            "at": stamp(one["at"]),
            "by": names.get(one["actor"], one["actor"]),
            "verb": one["verb"],
            "session": one["name"],
            "session_id": one["session_id"],
            "reason": one["reason"],
            "detail": one["detail"],
        }
        for one in found
    ]
