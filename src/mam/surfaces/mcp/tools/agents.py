"""The tools that start, resume and stop agents."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mam.surfaces.mcp.result_types import Applied, Spawned
from mam.surfaces.mcp.tool import CHANGE, DESTROY, ToolCall, make

AgentId = Annotated[str, Field(description="id or name of the agent", min_length=1, max_length=120)]
Milliseconds = Annotated[int, Field(ge=1, le=3_600_000)]
Model = Annotated[str, Field(description="its model; the program's own choice if empty")]
Permissions = Annotated[
    Literal["usual", "default", "ask", "auto", "skip"],
    Field(description="what it may do unasked; at most what you may"),
]


def spawn_agent(
    call: ToolCall,
    *,
    cli: Annotated[str, Field(description="claude, codex, gemini, opencode, …, practice", min_length=1)],
    prompt: Annotated[str, Field(description="its first message")] = "",
    name: Annotated[str, Field(description="a-z, 0-9 and -; made from the directory if empty")] = "",
    role: Annotated[str, Field(description="what it is for")] = "",
    model: Model = "",
    cwd: Annotated[str, Field(description="its directory; yours if empty")] = "",
    worktree: Annotated[str, Field(description="give it a git worktree on this branch")] = "",
    permissions: Permissions = "usual",
    mcp: Annotated[bool, Field(description="give it these tools, too")] = False,
    timeout_ms: Annotated[Milliseconds, Field(description="how long it may take to be ready")] = 60_000,
) -> Spawned:
    """Start an agent in a tmux pane of its own and return when it is ready for work. It is your child:
    you may message and stop it."""
    fleet = call.fleet.in_directory(cwd) if cwd else call.fleet
    usual = fleet.settings.permissions
    session = fleet.sessions.create(
        cli,
        name=name or None,
        role=role or None,
        prompt=prompt or None,
        model=model or None,
        worktree=worktree or None,
        permissions=fleet.agents.authorize_child(cli, requested(permissions), usual, name),
        mcp=mcp,
        timeout=timeout_ms / 1000,
    )
    return {
        **call.fleet.agents.get(session.id),  # type: ignore[typeddict-item]  # the same fields
        "surface_id": session.row["pane"].get("id", ""),
        "boot_prompt_delivered": bool(prompt),
        "note": None,
    }


def requested(permissions: str) -> str | None:
    """Return the requested permissions; None for `usual`, which leaves them to the settings."""
    return None if permissions == "usual" else permissions


def resume_agent(
    call: ToolCall,
    agent_id: AgentId,
    timeout_ms: Annotated[Milliseconds, Field(description="how long it may take to be ready")] = 60_000,
) -> Spawned:
    """Take up the conversation of an agent that has ended, in the same directory; one that runs is left
    as it is."""
    row = call.fleet.agents.authorize("resume", agent_id)
    outcome = call.fleet.sessions.resume(row["id"], timeout=timeout_ms / 1000)
    return {
        **call.fleet.agents.get(outcome.session.id),  # type: ignore[typeddict-item]  # the same fields
        "surface_id": outcome.session.row["pane"].get("id", ""),
        "note": outcome.note,
    }


def stop_agent(
    call: ToolCall,
    agent_id: AgentId,
    force: Annotated[bool, Field(description="end its whole process tree at once")] = False,
) -> Applied:
    """End an agent: gracefully first, at most some seconds, or by force; its conversation is kept. One that
    has ended already is left as it is."""
    row = call.fleet.agents.authorize("stop", agent_id)
    outcome = call.fleet.sessions.stop(row["id"], reason="stop_agent", force=force)
    return {
        "agent_id": agent_id,
        "state": call.fleet.agents.get(row["id"])["state"],
        "applied": "stop_agent",
        "left_running": outcome.left_running or [],  # type: ignore[typeddict-item]  # the same fields
    }


TOOLS = [
    make(spawn_agent, CHANGE, open_world=True),
    make(resume_agent, CHANGE, idempotent=True, open_world=True),
    make(stop_agent, DESTROY, idempotent=True),
]
