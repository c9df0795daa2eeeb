"""The tools that send messages to agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from mam.core.message_rules import DELIVERED
from mam.surfaces.mcp.result_types import Interacted, Receipt, Receipts
from mam.surfaces.mcp.tool import CHANGE, ToolCall, guarded_tools, make
from mam.surfaces.mcp.tool_hints import in_tools
from mam.surfaces.mcp.tools.agents import AgentId

Text = Annotated[str, Field(description="what the agent reads, up to 1 MB", min_length=1)]


def send_to(
    call: ToolCall,
    agent_id: AgentId,
    text: Text,
    when: Annotated[
        Literal["ready", "idle"], Field(description="as soon as it takes messages, or after its turn")
    ] = "ready",
    timeout_ms: Annotated[
        int, Field(description="wait so long while it cannot take it", ge=0, le=600_000)
    ] = 0,
) -> Receipt:
    """Send a message to an agent and return the receipt. `submitted` and `queued` are delivered; `held` goes
    out by itself as soon as it can: never send it again."""
    row = call.fleet.agents.authorize("message", agent_id)
    return receipt(agent_id, call.fleet.messages.send(row["id"], text, when=when, timeout=timeout_ms / 1000))


def receipt(agent_id: str, document: dict[str, Any]) -> Receipt:
    """Return a receipt of mam as the result of a tool."""
    facts = {"agent_id": agent_id, "delivered": document["state"] in DELIVERED, **document}
    reason = document.get("reason")
    return {**facts, "reason": in_tools(reason, guarded_tools) if reason else None}  # type: ignore[typeddict-item]


def broadcast(
    call: ToolCall,
    *,
    text: Text,
    role: Annotated[str, Field(description="only agents of this role")] = "",
    cli: Annotated[str, Field(description="only agents of this kind")] = "",
    team: Annotated[str, Field(description="only members of this team")] = "",
    exclude: Annotated[list[AgentId] | None, Field(description="not these", max_length=200)] = None,
) -> Receipts:
    """Send the same message to every running agent that you may message, or to those of a role, kind or
    team; each has its receipt."""
    excluded = {call.fleet.sessions.get(name).id for name in exclude or ()}
    documents = call.fleet.messages.broadcast(
        text,
        role=[role] if role else [],
        agent=[cli] if cli else [],
        team=[team] if team else [],
        everyone=not (role or cli or team),
        ids=[row_id for row_id in call.fleet.agents.reachable("message") if row_id not in excluded],
    )
    receipts = [receipt(document["session"], document) for document in documents]
    return {"receipts": receipts, "delivered": sum(entry["delivered"] for entry in receipts)}


def interact(
    call: ToolCall,
    agent: AgentId,
    action: Annotated[Literal["send", "interrupt", "model", "resume"], Field(description="what to do")],
    text: Annotated[str, Field(description="for send")] = "",
    model: Annotated[str, Field(description="for model: its name")] = "",
) -> Interacted:
    """Interrupt an agent's turn, switch its model, resume it or send it a message. An interrupt never
    answers a question that is open."""
    row = call.fleet.agents.authorize("resume" if action == "resume" else "message", agent)
    fields: dict[str, Any] = {}
    if action == "interrupt":
        fields = {"activity": call.fleet.messages.interrupt(row["id"])["activity"]}
    elif action == "resume":
        call.fleet.sessions.resume(row["id"])
    else:
        sent = (
            call.fleet.messages.send(row["id"], text)
            if action == "send"
            else call.fleet.messages.change_model(row["id"], model)
        )
        fields = {**receipt(agent, sent)}
    return {"agent_id": agent, "applied": action, **fields}  # type: ignore[typeddict-item]


TOOLS = [
    make(send_to, CHANGE, open_world=True),
    make(broadcast, CHANGE, open_world=True),
    make(interact, CHANGE, open_world=True),
]
