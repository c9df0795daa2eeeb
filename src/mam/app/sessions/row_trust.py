"""Rows that this user never started on this machine, for example from a repository of somebody else.

A row that names only the program of its kind runs nothing that `create` would not run. mam runs any other
such row only if the caller trusts it.
"""

from __future__ import annotations

from mam.core.errors import NotAllowed
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.session_row import Row

_HARMLESS = (None, "default", "ask")


def refuse(context: Context, row: Row, *, trust: bool) -> None:
    """Refuse to start a row that mam never started on this machine, unless the caller trusts it."""
    if trust or _is_plain(context, row) or _was_launched(context, row):
        return
    command = one_line(" ".join(row.get("start_command") or [row["agent"]]), 200)
    raise NotAllowed(
        f"'{row['name']}' was never started by mam on this machine, and its row would run: {command}",
        hint=f"look at the row (mam status {row['name']}); if you trust it, repeat with --trust",
    )


def note_launch(context: Context, row: Row) -> None:
    """Record in the user state what a session runs from now on."""
    assert context.root_id is not None
    context.user_state.note_launch(context.root_id, row["id"], _command_of(row))


def _was_launched(context: Context, row: Row) -> bool:
    if context.user_state.launch_of(context.root_id, row["id"]) is not None:
        return True
    return context.user_state.has_started(context.paths.root, row["id"])


def _command_of(row: Row) -> dict[str, Any]:
    return {
        "start_command": row.get("start_command") or [row["agent"]],
        "permissions": row.get("permissions"),
        "model": row.get("model"),
        "stores": row.get("stores") or {},
    }


def _is_plain(context: Context, row: Row) -> bool:
    stores = row.get("stores") or {}
    usual = context.kind(row["agent"]).stores(context.environ)
    return (
        (row.get("start_command") or [row["agent"]]) == [row["agent"]]
        and row.get("permissions") in _HARMLESS
        and all(usual.get(name, value) == value for name, value in stores.items())
        and stores.keys() <= usual.keys()
    )
