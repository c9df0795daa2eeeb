"""What only an operator gives to agents: answering for a person, deleting, and killing.

What cannot be undone is confirmed: the first call is refused with a word that is good once, for a minute, and
for exactly the same call on agents that have not changed meanwhile.
"""

from __future__ import annotations

import secrets
import time
from typing import Annotated

from pydantic import Field

from mam.core.authority import ancestors
from mam.core.errors import MamError, NeedsConfirmation
from mam.core.session_row import is_running
from mam.surfaces.mcp.results import Answered, Applied, Killed
from mam.surfaces.mcp.tool import CHANGE, DESTROY, ToolCall, make
from mam.surfaces.mcp.tools.agents import AgentId

Confirm = Annotated[str, Field(description="the word that the first call gave", max_length=40)]
_SECONDS = 60.0
_ALL = "all"
# word -> (what exactly it confirms, until when)
_words: dict[str, tuple[tuple[object, ...], float]] = {}


def answer_prompt(
    call: ToolCall,
    agent_id: AgentId,
    answer: Annotated[str, Field(description="allow, deny, an option, or words", min_length=1)],
    expect: Annotated[str, Field(description="the fingerprint that get_agent_state showed")] = "",
) -> Answered:
    """Answer the question that an agent is blocked on. Read it first with get_agent_state: with its
    fingerprint no other question can be answered by mistake."""
    row = call.fleet.agents.authorize("message", agent_id)
    done = call.fleet.messages.answer(row["id"], answer, expect=expect or None)
    return {"agent_id": agent_id, "dialog": done["dialog"], "answer": done["answer"], "next": done["next"]}


def purge(call: ToolCall, agent_id: AgentId, confirm: Confirm = "") -> Applied:
    """End an agent and delete its conversation from disk, for good. The first call is refused with a word;
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
    first call is refused with a word; call again with it within a minute."""
    allowed = set(call.fleet.agents.reachable("stop"))
    if target == _ALL:
        rows = [one.row for one in call.fleet.sessions.list() if one.id in allowed]
        rows = [row for row in rows if is_running(row)]
    else:
        named = [target] if isinstance(target, str) else target
        rows = list(
            {row["id"]: row for one in named for row in [call.fleet.agents.authorize("stop", one)]}.values()
        )
    same = ("kill", force, *sorted((row["id"], row.get("version")) for row in rows))
    _confirm(call, confirm, same, f"end {len(rows)} agents")
    killed: list[str] = []
    failed: list[tuple[str, MamError]] = []
    everybody = [one.row for one in call.fleet.sessions.list()]
    for row in sorted(rows, key=lambda one: len(ancestors(one["id"], everybody)), reverse=True):
        try:
            call.fleet.sessions.stop(row["id"], reason="kill", force=force)
            killed.append(row["name"])
        except MamError as error:
            failed.append((row["id"], error))
    if failed and not killed:
        raise failed[0][1]
    errors = [{"agent_id": one, **error.as_json()["error"]} for one, error in failed]
    return {"killed": killed, "errors": errors, "force": force}


def _confirm(call: ToolCall, word: str, what: tuple[object, ...], said: str) -> None:
    """Refuse with a fresh word, unless one was given for exactly this; a word is good once."""
    now = time.monotonic()
    whole = (call.who.pid, *what)
    # Calls run in threads of their own.
    for old in [one for one, (_, until) in list(_words.items()) if until < now]:
        _words.pop(old, None)
    if word and _words.pop(word, (None, 0.0))[0] == whole:
        return
    fresh = secrets.token_hex(4)
    _words[fresh] = (whole, now + _SECONDS)
    raise NeedsConfirmation(f"this cannot be undone: {said}", hint=f'call it again with confirm "{fresh}"')


TOOLS = [
    make(answer_prompt, CHANGE, open_world=True),
    make(purge, DESTROY),
    make(kill, DESTROY),
]
