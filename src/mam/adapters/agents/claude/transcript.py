"""Reading a transcript of Claude Code: turns, prompts, activity, model, and how full the context is.

A transcript may be huge, so this reads only complete lines at its end, or beyond a known size.
"""

from __future__ import annotations

from mam.adapters.agents.jsonl import count, epoch, lines_since, parse, recorded, tail
from mam.adapters.agents.kind import Transcript, add_turn
from mam.core.activity import IDLE, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from mam.adapters.agents.kind import Turn
    from mam.core.token_count import TokenCount

    # What one answer used, and its model.
    Used = tuple[dict[str, Any], str | None]

# A turn with its attachments takes some 100 KB.
_LARGEST = 8 * 1024 * 1024
_TAIL = 256 * 1024
_WINDOW, _LARGE_WINDOW = 200_000, 1_000_000
_READ, _WRITTEN = "cache_read_input_tokens", "cache_creation_input_tokens"
_IN = ("input_tokens", _WRITTEN, _READ)
# What the record says of an answer at the list price. Other values, such as `fast`, have another price.
_AT_LIST_PRICE = {
    "speed": (None, "standard"),
    "service_tier": (None, "standard"),
    "inference_geo": (None, "", "global", "not_available"),
}


def read(path: str, most: int) -> Transcript | None:
    """Return the last turns and the figures from the end of a transcript; None if it cannot be read."""
    try:
        lines, is_whole = tail(path, _LARGEST)
    except OSError:
        return None
    turns: list[Turn] = []
    used_by_answer: dict[str, Used] = {}
    model = None
    for line in lines:
        if b'"user"' not in line and b'"assistant"' not in line:
            continue
        entry = parse(line)
        # A damaged line may be that of a request.
        is_whole = is_whole and bool(entry)
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
                used_by_answer[str(message.get("id"))] = message["usage"], model
    used = list(used_by_answer.values())
    return Transcript(
        turns[-most:] if most else [],
        model=model,
        token_counts=_token_counts(used) if is_whole else None,
        **_figures([usage for usage, _ in used], model),
    )


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
        "tokens_cache_read": sum(_sum(usage, (_READ,)) for usage in usages),
        "tokens_cache_write": sum(_sum(usage, (_WRITTEN,)) for usage in usages),
        "context": context,
        "window": _LARGE_WINDOW if is_large else _WINDOW,
    }


def _token_counts(used: list[Used]) -> list[TokenCount] | None:
    """Return the tokens of each answer; None if the record of one is damaged."""
    try:
        return [_token_count(usage, model) for usage, model in used]
    except ValueError:
        return None


def _token_count(usage: dict[str, Any], model: str | None) -> TokenCount:
    from mam.core.token_count import TokenCount

    written, details = recorded(usage, _WRITTEN), usage.get("cache_creation")
    hour = recorded(details, "ephemeral_1h_input_tokens") if isinstance(details, dict) else 0
    has_list_price = all(usage.get(name) in usual for name, usual in _AT_LIST_PRICE.items())
    return TokenCount(
        model if has_list_price else None,
        input=recorded(usage, "input_tokens"),
        output=recorded(usage, "output_tokens"),
        cache_read=recorded(usage, _READ),
        cache_write=written - hour,
        cache_write_1h=hour,
    )


def _sum(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    return sum(count(usage.get(name)) or 0 for name in names)


def read_turn(path: str) -> Evidence | None:
    """Return the activity by the last line of a transcript that shows one."""
    try:
        lines, _ = tail(path, _TAIL)
    except OSError:
        return None
    for line in reversed(lines):
        entry = parse(line)
        verdict = None if entry.get("isSidechain") or entry.get("isMeta") else _activity_by(entry)
        at = epoch(entry.get("timestamp")) if verdict else None
        if verdict and at is not None:
            state, reason = verdict
            return Evidence("transcript", state, at, detail=reason)
    return None


def _activity_by(entry: dict[str, Any]) -> tuple[str, str] | None:
    """Return the activity that a line shows, with the reason; None if it shows none."""
    kind = entry.get("type")
    if kind == "system":
        return (IDLE, "the turn ended") if entry.get("subtype") == "turn_duration" else None
    if kind == "user":
        text = next(iter(texts(entry)), "")
        if text.startswith("[Request interrupted by user"):
            return IDLE, "the turn was interrupted"
        # Output of commands is recorded as a user line that begins with a tag.
        return None if text.startswith("<") else (WORKING, "the last line is the user's")
    if kind != "assistant":
        return None
    if entry.get("isApiErrorMessage"):
        return IDLE, "the turn ended in an error"
    message = entry.get("message")
    reason = message.get("stop_reason") if isinstance(message, dict) else None
    if reason in ("end_turn", "stop_sequence", "max_tokens", "refusal"):
        return IDLE, f"the answer ended ({reason})"
    return WORKING, "the answer continues"


def identity(path: str) -> tuple[str | None, str | None]:
    """Return the last colour and the last name of a conversation. Raises OSError."""
    values: dict[str, object] = {}
    for line in tail(path, _TAIL)[0]:
        if b'"agent-color"' in line or b'"agent-name"' in line:
            entry = parse(line)
            values[str(entry.get("type"))] = entry.get("agentColor") or entry.get("agentName")
    colour, name = values.get("agent-color"), values.get("agent-name")
    return str(colour) if colour else None, str(name) if name else None


def prompts(path: str, since: int, *, queued: bool = True) -> Iterator[str]:
    """Yield the user's prompts beyond `since` bytes, with those in the queue or without. Raises OSError."""
    for line in lines_since(path, since):
        if b'"user"' not in line and b'"queue-operation"' not in line:
            continue
        entry = parse(line)
        if entry.get("type") == "user" and not entry.get("isMeta"):
            yield from texts(entry)
        elif queued and entry.get("type") == "queue-operation" and isinstance(entry.get("content"), str):
            yield entry["content"]


def prompts_in_running_turn(path: str, since: int) -> Iterator[str]:
    """Yield the queued prompts that a turn took in while it ran: they have no line of the user.

    Raises OSError.
    """
    for line in lines_since(path, since):
        attachment = parse(line).get("attachment") if b'"queued_command"' in line else None
        if not isinstance(attachment, dict) or attachment.get("type") != "queued_command":
            continue
        yield from texts({"message": {"content": attachment.get("prompt")}})


def texts(entry: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a line."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
