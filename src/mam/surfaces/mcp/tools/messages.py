"""Words to agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from mam.core.message import DELIVERED
from mam.surfaces.mcp.results import Interacted, Receipt, Receipts
from mam.surfaces.mcp.tool import CHANGE, ToolCall, make
from mam.surfaces.mcp.tools.agents import AgentId

Text = Annotated[str, Field(description="what the agent reads, up to 1 MB", min_length=1)]


def send_to(
    call: ToolCall,
    agent_id: AgentId,
    text: Text,
    when: Annotated[
        Literal["ready", "idle"], Field(description="as soon as it takes words, or after its turn")
    ] = "ready",
    timeout_ms: Annotated[
        int, Field(description="wait so long while it cannot take them", ge=0, le=600_000)
    ] = 0,
) -> Receipt:
    """Send words to an agent and return the receipt. `submitted` and `queued` are delivered; `held` goes
    out by itself as soon as it can: never send it again."""
    row = call.fleet.agents.authorize("message", agent_id)
    return receipt(agent_id, call.fleet.messages.send(row["id"], text, when=when, timeout=timeout_ms / 1000))


def receipt(agent_id: str, done: dict[str, Any]) -> Receipt:
    """Return a receipt in the words of agents."""
    return {"agent_id": agent_id, "delivered": done["state"] in DELIVERED, **done}  # type: ignore[typeddict-item]


def broadcast(
    call: ToolCall,
    *,
    text: Text,
    role: Annotated[str, Field(description="only agents of this role")] = "",
    cli: Annotated[str, Field(description="only agents of this kind")] = "",
    team: Annotated[str, Field(description="only members of this team")] = "",
    exclude: Annotated[list[AgentId] | None, Field(description="not these", max_length=200)] = None,
) -> Receipts:
    """Send the same words to every running agent that you may write to, or to those of a role, kind or
    team; each has its receipt."""
    without = {call.fleet.sessions.get(one).id for one in exclude or ()}
    done = call.fleet.messages.broadcast(
        text,
        role=[role] if role else [],
        agent=[cli] if cli else [],
        team=[team] if team else [],
        everyone=not (role or cli or team),
        ids=[one for one in call.fleet.agents.reachable("message") if one not in without],
    )
    receipts = [receipt(one["session"], one) for one in done]
    return {"receipts": receipts, "delivered": sum(one["delivered"] for one in receipts)}


def interact(
    call: ToolCall,
    agent: AgentId,
    action: Literal["send", "interrupt", "model", "resume"],
    text: Annotated[str, Field(description="for send")] = "",
    model: Annotated[str, Field(description="for model: its name")] = "",
) -> Interacted:
    """Interrupt an agent's turn, have it go on with another model, resume or write to it. An interrupt never
    answers a question that is open."""
    row = call.fleet.agents.authorize("resume" if action == "resume" else "message", agent)
    done: dict[str, Any] = {}
    if action == "interrupt":
        done = {"activity": call.fleet.messages.interrupt(row["id"])["activity"]}
    elif action == "resume":
        call.fleet.sessions.resume(row["id"])
    else:
        sent = (
            call.fleet.messages.send(row["id"], text)
            if action == "send"
            else call.fleet.messages.change_model(row["id"], model)
        )
        done = {**receipt(agent, sent)}
    return {"agent_id": agent, "applied": action, **done}  # type: ignore[typeddict-item]


TOOLS = [
    make(send_to, CHANGE, open_world=True),
    make(broadcast, CHANGE, open_world=True),
    make(interact, CHANGE, open_world=True),
]
