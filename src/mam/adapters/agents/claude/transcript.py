"""What was said in a conversation of Claude Code, with which model, and how full its context is."""

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
    """Return the last turns and the figures of the end of a transcript; None where it cannot be read."""
    try:
        lines, _ = tail(path, _LARGEST)
    except OSError:
        return None
    turns: list[Turn] = []
    used: dict[str, dict[str, Any]] = {}
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
                # One answer is several lines, one a block, and each repeats the usage.
                used[str(message.get("id"))] = message["usage"]
    return Transcript(turns[-most:] if most else [], model=model, **_figures(list(used.values()), model))


def _add_turn(turns: list[Turn], entry: dict[str, Any]) -> None:
    role = entry.get("type")
    words = "\n".join(texts(entry)).strip()
    if role not in ("user", "assistant") or not words or (role == "user" and words.startswith("<")):
        return
    add_turn(turns, role, words, entry.get("timestamp"))


def _figures(used: list[dict[str, Any]], model: str | None) -> dict[str, int | None]:
    if not used:
        return {}
    context = _sum(used[-1], _IN)
    is_large = context > _WINDOW or (model or "").endswith("[1m]")
    return {
        "tokens_in": sum(_sum(one, _IN) for one in used),
        "tokens_out": sum(_sum(one, ("output_tokens",)) for one in used),
        "context": context,
        "window": _LARGE_WINDOW if is_large else _WINDOW,
    }


def _sum(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    return sum(count(usage.get(name)) or 0 for name in names)
