"""The tools for agents in panes of the caller's window."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from mam.core.delegated_agent_state import ENDED
from mam.core.errors import NeedsConfirmation, Usage
from mam.surfaces.mcp.result_types import Closed, Split
from mam.surfaces.mcp.tool import CHANGE, DESTROY, ToolCall, make
from mam.surfaces.mcp.tools.agents import Milliseconds, Model, Permissions, requested


def new_split(
    call: ToolCall,
    *,
    role: Annotated[str, Field(description="what it is for: dev, qa, …", min_length=1, max_length=60)],
    cli: Annotated[str, Field(description="claude, codex, …, practice; empty: your own kind")] = "",
    title: Annotated[str, Field(description="its name; made from the role if empty")] = "",
    task: Annotated[str, Field(description="its first task")] = "",
    model: Model = "",
    permissions: Permissions = "usual",
    mcp: Annotated[bool, Field(description="give it these tools, too")] = False,
    timeout_ms: Annotated[Milliseconds, Field(description="how long it may take to be ready")] = 60_000,
) -> Split:
    """Start an agent in one more pane of your own window, as a member of your team; it reports to you. You
    keep the large pane, members are stacked beside it."""
    usual = call.fleet.settings.team_permissions
    spawned = call.fleet.teams.spawn(
        role,
        agent=cli or None,
        name=title or None,
        task=task or None,
        model=model or None,
        permissions=call.fleet.agents.authorize_child(cli or "claude", requested(permissions), usual, title),
        mcp=mcp,
        timeout=timeout_ms / 1000,
    )
    row = spawned["session"]
    facts = {"surface": row["pane"]["id"], "team": spawned["team"], "receipt": spawned["receipt"]}
    return {**call.fleet.agents.get(row["id"]), **facts}  # type: ignore[typeddict-item]  # the same fields


def close_surface(
    call: ToolCall,
    *,
    surface: Annotated[str, Field(description="the pane of the agent (%7)")] = "",
    agent_id: Annotated[str, Field(description="or the agent")] = "",
    force: Annotated[bool, Field(description="although it runs, or has not reported")] = False,
) -> Closed:
    """Close an agent's pane. A member of a team must have reported; any other agent that runs is refused
    without force. Its conversation is kept."""
    if bool(surface) == bool(agent_id):
        raise Usage("name either a pane or an agent", hint="give exactly one of surface and agent_id")
    target = call.fleet.agents.in_pane(surface) if surface else agent_id
    row = call.fleet.agents.authorize("stop", target)
    if call.fleet.teams.is_member(row["id"]):
        closed = call.fleet.teams.close(row["id"], force=force)
        changed, note = closed["changed"], closed["note"]
    elif not force and call.fleet.agents.get(row["id"])["state"] not in ENDED:
        raise NeedsConfirmation(
            f"'{row['name']}' runs, and closing its pane ends it", hint="use force, or stop_agent"
        )
    else:
        ended = call.fleet.sessions.stop(row["id"], reason="close_surface")
        changed, note = ended.changed, ended.note
    return {"agent_id": row["id"], "agent_stopped": changed, "surface_closed": True, "note": note}


TOOLS = [
    make(new_split, CHANGE, open_world=True),
    make(close_surface, DESTROY, idempotent=True),
]
