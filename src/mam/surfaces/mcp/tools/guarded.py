"""The guarded tools, which only the user can allow: answer for a person, delete, and kill.

A tool whose effect cannot be undone needs a confirmation: the first call is refused with a code. The code is
valid once, for a minute, and for exactly the same call on agents that have not changed meanwhile.
"""

from __future__ import annotations

import secrets
import time
from typing import Annotated

from pydantic import Field

from mam.core.authority import ancestors
from mam.core.errors import MamError, NeedsConfirmation
from mam.core.session_row import is_running
from mam.surfaces.mcp.result_types import Answered, Applied, Killed
from mam.surfaces.mcp.tool import CHANGE, DESTROY, ToolCall, guarded_tools, make
from mam.surfaces.mcp.tool_hints import error_document
from mam.surfaces.mcp.tools.agents import AgentId

Confirm = Annotated[str, Field(description="the code that the first call gave", max_length=40)]
_SECONDS = 60.0
_ALL = "all"
# code -> (the call that it confirms, valid until)
_codes: dict[str, tuple[tuple[object, ...], float]] = {}


def answer_prompt(
    call: ToolCall,
    agent_id: AgentId,
    answer: Annotated[str, Field(description="allow, deny, an option, or words", min_length=1)],
    expect: Annotated[str, Field(description="the fingerprint that get_agent_state showed")] = "",
) -> Answered:
    """Answer the question that an agent is blocked on. Read it first with get_agent_state: with its
    fingerprint no other question can be answered by mistake."""
    row = call.fleet.agents.authorize("message", agent_id)
    outcome = call.fleet.messages.answer(row["id"], answer, expect=expect or None)
    return {
        "agent_id": agent_id,
        "dialog": outcome["dialog"],
        "answer": outcome["answer"],
        "next": outcome["next"],
    }


def purge(call: ToolCall, agent_id: AgentId, confirm: Confirm = "") -> Applied:
    """End an agent and delete its conversation from disk, for good. The first call is refused with a code;
    call again with it within a minute."""
    row = call.fleet.agents.authorize("purge", agent_id)
    _confirm(
        call, confirm, ("purge", row["id"], row.get("version")), f"delete the conversation of '{row['name']}'"
    )
    call.fleet.sessions.stop(row["id"], reason="purge", purge_conversation=True)
    return {"agent_id": agent_id, "state": call.fleet.agents.get(row["id"])["state"], "applied": "purge"}


def kill(
    call: ToolCall,
    target: Annotated[
        AgentId | Annotated[list[AgentId], Field(min_length=1, max_length=200)],
        Field(description="an agent, several, or all"),
    ],
    force: Annotated[bool, Field(description="end the process trees at once")] = False,
    confirm: Confirm = "",
) -> Killed:
    """End many agents, children first; one that fails stops no other, and it is an error if all do. The
    first call is refused with a code; call again with it within a minute."""
    allowed = set(call.fleet.agents.reachable("stop"))
    if target == _ALL:
        rows = [session.row for session in call.fleet.sessions.list() if session.id in allowed]
        rows = [row for row in rows if is_running(row)]
    else:
        targets = [target] if isinstance(target, str) else target
        rows = list(
            {
                row["id"]: row for name in targets for row in [call.fleet.agents.authorize("stop", name)]
            }.values()
        )
    action = ("kill", force, *sorted((row["id"], row.get("version")) for row in rows))
    _confirm(call, confirm, action, f"end {len(rows)} agents")
    killed: list[str] = []
    failed: list[tuple[str, MamError]] = []
    everybody = [session.row for session in call.fleet.sessions.list()]
    for row in sorted(rows, key=lambda row: len(ancestors(row["id"], everybody)), reverse=True):
        try:
            call.fleet.sessions.stop(row["id"], reason="kill", force=force)
            killed.append(row["name"])
        except MamError as error:
            failed.append((row["id"], error))
    if failed and not killed:
        raise failed[0][1]
    errors = [
        {"agent_id": agent_id, **error_document(error, guarded_tools)["error"]} for agent_id, error in failed
    ]
    return {"killed": killed, "errors": errors, "force": force}


def _confirm(call: ToolCall, given_code: str, action: tuple[object, ...], description: str) -> None:
    """Raise NeedsConfirmation with a new code, unless the call has the code for exactly this action."""
    now = time.monotonic()
    call_key = (call.client.pid, *action)
    # Several threads run calls: copy the items first, and tolerate a code that is gone already.
    for code in [code for code, (_, until) in list(_codes.items()) if until < now]:
        _codes.pop(code, None)
    if given_code and _codes.pop(given_code, (None, 0.0))[0] == call_key:
        return
    new_code = secrets.token_hex(4)
    _codes[new_code] = (call_key, now + _SECONDS)
    raise NeedsConfirmation(
        f"this cannot be undone: {description}", hint=f'call it again with confirm "{new_code}"'
    )


TOOLS = [
    make(answer_prompt, CHANGE, open_world=True),
    make(purge, DESTROY),
    make(kill, DESTROY),
]
