"""Lists the panes on the tmux servers of this root, with and without a session. Reads only."""

from __future__ import annotations

from mam.core.errors import AmbiguousTarget, SessionNotFound
from mam.core.root_mark import is_same_root
from mam.core.safe_text import one_line
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context


def list_panes(context: Context) -> dict[str, Any]:
    """Return `{servers: [{name, answers}], surfaces: [{surface, server, window, agent_id, …}]}`."""
    names = {row["id"]: row["name"] for row in context.view_to_show().rows if row.get("id")}
    servers: list[dict[str, Any]] = []
    panes: list[dict[str, Any]] = []
    for server in sorted({*context.registry.servers(), context.server_name(None)}):
        listing = context.tmux(server).panes(True)
        servers.append({"name": server, "answers": listing.confirmed})
        for pane in listing.panes:
            is_ours = pane.mark in names and (not pane.root or is_same_root(pane.root, context.root_mark))
            panes.append(
                {
                    "surface": pane.id,
                    "server": server,
                    "tmux_session": one_line(pane.session_name, 100),
                    "window": pane.window_id,
                    "title": one_line(pane.title, 200),
                    "command": one_line(pane.command, 100),
                    "dead": pane.dead,
                    "agent_id": pane.mark if is_ours else None,
                    "name": names[pane.mark] if is_ours else None,
                }
            )
    return {"servers": servers, "surfaces": panes}


def session_in_pane(context: Context, pane: str) -> str:
    """Return the id of the running session in a pane. Two tmux servers may use the same pane id."""
    rows = [row for row in context.view_to_show().rows if is_running(row) and row["pane"].get("id") == pane]
    if not rows:
        raise SessionNotFound(
            f"no session runs in pane {one_line(pane, 20)}", hint="list_surfaces shows all panes"
        )
    if len(rows) > 1:
        names = ", ".join(row["name"] for row in rows)
        raise AmbiguousTarget(
            f"pane {one_line(pane, 20)} exists on several tmux servers", hint=f"name one of {names}"
        )
    return rows[0]["id"]
