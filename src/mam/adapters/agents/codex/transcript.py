"""Reading a rollout of Codex: the last turns, the model, and how full the context is."""

from __future__ import annotations

from mam.adapters.agents.codex.files import message
from mam.adapters.agents.jsonl import count, parse, tail
from mam.adapters.agents.kind import Transcript, add_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.kind import Turn

_LARGEST = 8 * 1024 * 1024


def read(path: str, most: int) -> Transcript | None:
    """Return the last turns and the figures from the end of a rollout; None if it cannot be read."""
    try:
        lines, _ = tail(path, _LARGEST)
    except OSError:
        return None
    turns: list[Turn] = []
    figures: dict[str, Any] = {}
    for line in lines:
        if b'"item_completed"' in line:
            _add_turn(turns, parse(line))
        elif b'"token_count"' in line or b'"turn_context"' in line or b'"task_started"' in line:
            figures.update(_figures(parse(line)))
    return Transcript(turns[-most:] if most else [], **figures)


def _add_turn(turns: list[Turn], entry: dict[str, Any]) -> None:
    role_and_text = message(entry)
    if role_and_text is None or not role_and_text[1].strip():
        return
    add_turn(turns, *role_and_text, entry.get("timestamp"))


def _figures(entry: dict[str, Any]) -> dict[str, Any]:
    payload = entry.get("payload")
    if not isinstance(payload, dict):
        return {}
    if entry.get("type") == "turn_context":
        return {"model": payload["model"]} if isinstance(payload.get("model"), str) else {}
    info = payload.get("info") if payload.get("type") == "token_count" else payload
    if not isinstance(info, dict):
        return {}
    total, last = info.get("total_token_usage"), info.get("last_token_usage")
    figures = {
        "tokens_in": _number(total, "input_tokens"),
        "tokens_out": _number(total, "output_tokens"),
        "context": _number(last, "input_tokens"),
        "window": _number(info, "model_context_window"),
    }
    return {name: value for name, value in figures.items() if value is not None}


def _number(figures: object, name: str) -> int | None:
    return count(figures.get(name)) if isinstance(figures, dict) else None
