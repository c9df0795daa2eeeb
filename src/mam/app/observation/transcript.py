"""The conversation of a session as its agent recorded it: last turns, model, tokens, cost. Reads only."""

from __future__ import annotations

from mam.app.observation import conversations
from mam.app.observation.prices import load_prices
from mam.core.errors import NoTranscript
from mam.core.prices import cost
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from mam.adapters.agents.kind import Transcript
    from mam.app.context.context import Context
    from mam.core.prices import PriceTable
    from mam.core.session_row import Row

_LAST_WORDS = 200
# The agent's last words are in one of this many turns: several prompts may wait for an answer.
_TURNS = 20


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
    figures = _figures(record, load_prices(context))
    return {"session": row["name"], "conversation": conversation, "turns": last_turns, **figures}


def usage_and_last_words(context: Context, rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Return for each row `usage` and `last_words`; both are None without a readable transcript.

    `usage` is the model, the tokens, what they cost, and how full the context is. Each transcript is read
    once, and the price table once for all rows.
    """
    table = load_prices(context)
    facts: list[dict[str, Any]] = []
    for row in rows:
        record = _read(context, row, conversations.open_conversation(context, row), _TURNS)
        if record is None:
            facts.append({"usage": None, "last_words": None})
        else:
            facts.append({"usage": _figures(record, table), "last_words": _last_words(record)})
    return facts


def _read(context: Context, row: Row, conversation: str | None, turns: int) -> Transcript | None:
    if not conversation:
        return None
    stores = conversations.stores_of(context, row)
    return context.kind(row["agent"]).read_transcript(conversation, row["workspace"], stores, turns)


def _figures(record: Transcript, table: PriceTable | None) -> dict[str, Any]:
    percent = round(100 * record.context / record.window, 1) if record.context and record.window else None
    return {
        "model": record.model,
        "tokens_in": record.tokens_in,
        "tokens_out": record.tokens_out,
        "tokens_cache_read": record.tokens_cache_read,
        "tokens_cache_write": record.tokens_cache_write,
        "context": record.context,
        "window": record.window,
        "context_percent": percent,
        "cost_usd": cost(record.token_counts, table) if table is not None else None,
    }


def _last_words(record: Transcript) -> str | None:
    """Return what the agent wrote last, as one line."""
    text = next((turn.last_text for turn in reversed(record.turns) if turn.role == "assistant"), "")
    # Twice the length, as the blanks between paragraphs become one.
    words = " ".join(one_line(text.strip(), 2 * _LAST_WORDS).split())
    return one_line(words, _LAST_WORDS) or None
