"""Words to agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from mam.surfaces.mcp.shapes import Receipt
from mam.surfaces.mcp.tool import CHANGE, Call, make
from mam.surfaces.mcp.tools.agents import AgentId

Text = Annotated[str, Field(description="what the agent reads, up to 1 MB", min_length=1)]
DELIVERED = ("submitted", "queued")


def send_to(
    call: Call,
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
    call.fleet.authorize("message", agent_id)
    return receipt(agent_id, call.fleet.send(agent_id, text, when=when, timeout=timeout_ms / 1000))


def receipt(agent_id: str, done: dict[str, Any]) -> Receipt:
    """Return a receipt in the words of agents."""
    return {"agent_id": agent_id, "delivered": done["state"] in DELIVERED, **done}  # type: ignore[typeddict-item]


TOOLS = [make(send_to, CHANGE, open_world=True)]
