"""A session's conversation as the agent itself recorded it: last turns, model, tokens. Reads only."""

from __future__ import annotations

from mam.app.observation import conversations
from mam.core.errors import NoTranscript
from mam.core.session_row import current_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.kind import Transcript
    from mam.app.context.context import Context
    from mam.core.session_row import Row


def transcript(context: Context, target: str, turns: int) -> dict[str, Any]:
    """Return the end of the conversation; NoTranscript where there is no record of one that mam can read."""
    row = context.registry.view().find(target)
    conversation = now_open(context, row)
    found = _read(context, row, conversation, turns)
    if found is None:
        raise NoTranscript(
            f"no record of a conversation of '{row['name']}' can be read",
            hint=f"mam read {row['name']} shows its screen",
        )
    said = [{"role": one.role, "text": one.text, "at": one.at} for one in found.turns]
    return {"session": row["name"], "conversation": conversation, "turns": said, **_figures(found)}


def usage(context: Context, row: Row) -> dict[str, Any] | None:
    """Return model, tokens and how full the context is; None where no record says anything."""
    found = _read(context, row, now_open(context, row), 0)
    return _figures(found) if found is not None else None


def now_open(context: Context, row: Row) -> str | None:
    """Return the conversation that the agent has now, which may be newer than the row's."""
    said = conversations.told(context, row)
    return said[0] if said else current_conversation(row)


def _read(context: Context, row: Row, conversation: str | None, turns: int) -> Transcript | None:
    if not conversation:
        return None
    stores = conversations.stores_of(context, row)
    return context.kind(row["agent"]).read_transcript(conversation, row["workspace"], stores, turns)


def _figures(found: Transcript) -> dict[str, Any]:
    percent = round(100 * found.context / found.window, 1) if found.context and found.window else None
    return {
        "model": found.model,
        "tokens_in": found.tokens_in,
        "tokens_out": found.tokens_out,
        "context": found.context,
        "window": found.window,
        "context_percent": percent,
    }
