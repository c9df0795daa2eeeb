"""Reading a transcript of Claude Code: the last turns, the model, and how full the context is."""

from __future__ import annotations

from mam.adapters.agents.claude.files import texts
from mam.adapters.agents.jsonl import count, parse, tail
from mam.adapters.agents.kind import Transcript, add_turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.kind import Turn

# A turn with its attachments takes some 100 KB.
_LARGEST = 8 * 1024 * 1024
_WINDOW, _LARGE_WINDOW = 200_000, 1_000_000
_IN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def read(path: str, most: int) -> Transcript | None:
    """Return the last turns and the figures from the end of a transcript; None if it cannot be read."""
    try:
        lines, _ = tail(path, _LARGEST)
    except OSError:
        return None
    turns: list[Turn] = []
    usage_by_answer: dict[str, dict[str, Any]] = {}
    model = None
    for line in lines:
        if b'"user"' not in line and b'"assistant"' not in line:
            continue
        entry = parse(line)
        if entry.get("isSidechain") or entry.get("isMeta"):
            continue
        _add_turn(turns, entry)
        message = entry.get("message")
        if (
            entry.get("type") == "assistant"
            and isinstance(message, dict)
            and not entry.get("isApiErrorMessage")
        ):
            model = message.get("model") if isinstance(message.get("model"), str) else model
            if isinstance(message.get("usage"), dict):
                # An answer has one line per block, and each line repeats the usage of the answer.
                usage_by_answer[str(message.get("id"))] = message["usage"]
    figures = _figures(list(usage_by_answer.values()), model)
    return Transcript(turns[-most:] if most else [], model=model, **figures)


def _add_turn(turns: list[Turn], entry: dict[str, Any]) -> None:
    role = entry.get("type")
    text = "\n".join(texts(entry)).strip()
    if role not in ("user", "assistant") or not text or (role == "user" and text.startswith("<")):
        return
    add_turn(turns, role, text, entry.get("timestamp"))


def _figures(usages: list[dict[str, Any]], model: str | None) -> dict[str, int | None]:
    if not usages:
        return {}
    context = _sum(usages[-1], _IN)
    is_large = context > _WINDOW or (model or "").endswith("[1m]")
    return {
        "tokens_in": sum(_sum(usage, _IN) for usage in usages),
        "tokens_out": sum(_sum(usage, ("output_tokens",)) for usage in usages),
        "context": context,
        "window": _LARGE_WINDOW if is_large else _WINDOW,
    }


def _sum(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    return sum(count(usage.get(name)) or 0 for name in names)
