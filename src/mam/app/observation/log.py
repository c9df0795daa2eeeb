"""The verb `log`: who did what to which session, when, and why. Reads only."""

from __future__ import annotations

from mam.adapters.store import database
from mam.adapters.store.rows_and_log import not_found
from mam.adapters.store.tables import read_log as entries
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context


def log(
    context: Context, target: str | None = None, *, limit: int = 50, since: float | None = None
) -> list[dict[str, Any]]:
    """Return the newest entries, oldest first; with `target` those of one session, by id or any old name."""
    context.warn_of_root()
    if context.registry.reader() is None:
        return []
    rows = context.view_to_show().rows
    # The connection comes after the view, which may close an earlier one.
    connection = context.registry.reader()
    if connection is None:
        return []
    session_id = next((row.get("id") for row in rows if target in (row["name"], row.get("id"))), None)
    oldest = context.now() - since if since is not None else 0.0
    with database.errors(context.paths.db):
        newest = entries.newest(connection, target, session_id, since=oldest, limit=limit)
    if target is not None and session_id is None and not newest:
        raise not_found(target, [row["name"] for row in rows])
    names = {row.get("id"): row["name"] for row in rows}
    return [
        {
            "seq": entry["seq"],
            "at": stamp(entry["at"]),
            "by": names.get(entry["actor"], entry["actor"]),
            "verb": entry["verb"],
            "session": entry["name"],
            "session_id": entry["session_id"],
            "reason": entry["reason"],
            "detail": entry["detail"],
        }
        for entry in newest
    ]
