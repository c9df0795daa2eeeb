"""The conversation of a session as its agent recorded it: last turns, model, tokens. Reads only."""

from __future__ import annotations

from mam.app.observation import conversations
from mam.core.errors import NoTranscript

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.kind import Transcript
    from mam.app.context.context import Context
    from mam.core.session_row import Row


def transcript(context: Context, target: str, turns: int) -> dict[str, Any]:
    """Return the end of the conversation; raise NoTranscript where mam can read no record of it."""
    context.require_own_root()
    row = context.view_to_show().find(target)
    conversation = conversations.open_conversation(context, row)
    record = _read(context, row, conversation, turns)
    if record is None:
        raise NoTranscript(
            f"'{row['name']}' has no transcript that mam can read",
            hint=f"mam read {row['name']} shows its screen",
        )
    last_turns = [{"role": turn.role, "text": turn.text, "at": turn.at} for turn in record.turns]
    return {"session": row["name"], "conversation": conversation, "turns": last_turns, **_figures(record)}


def usage(context: Context, row: Row) -> dict[str, Any] | None:
    """Return the model, the tokens and how full the context is; None without a readable transcript."""
    record = _read(context, row, conversations.open_conversation(context, row), 0)
    return _figures(record) if record is not None else None


def _read(context: Context, row: Row, conversation: str | None, turns: int) -> Transcript | None:
    if not conversation:
        return None
    stores = conversations.stores_of(context, row)
    return context.kind(row["agent"]).read_transcript(conversation, row["workspace"], stores, turns)


def _figures(record: Transcript) -> dict[str, Any]:
    percent = round(100 * record.context / record.window, 1) if record.context and record.window else None
    return {
        "model": record.model,
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "context": record.context,
        "window": record.window,
        "context_percent": percent,
    }
