"""Reading what Gemini CLI records: turns in the chat file, and prompts also in the log of the workspace.

The log has a prompt as soon as Gemini takes the Enter; the chat file has it only after Gemini has chosen a
model for it. The log names the id of the launch, even if another conversation is open by then.
"""

from __future__ import annotations

import json
import os
import time

from mam.adapters.agents.gemini import files
from mam.adapters.agents.jsonl import count, epoch, lines_since, parse, recorded, tail
from mam.adapters.agents.kind import Transcript, add_turn
from mam.adapters.agents.open_regular import open_regular_file
from mam.core.activity import IDLE, UNKNOWN, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from mam.adapters.agents.kind import Turn
    from mam.core.token_count import TokenCount

_LARGEST = 8 * 1024 * 1024
_LOG_TAIL = 256 * 1024
# All models of Gemini CLI have this context window.
_WINDOW = 1_048_576
_CANCELLED = "Request cancelled."
# Gemini records an answer before the tools that it calls. So an answer ends a turn only if nothing follows it
# for this many seconds.
_ANSWER_SETTLE_SECONDS = 3.0
# The longest time between the log and the chat file. Gemini chooses a model in between, by another request.
_CHOOSING_SECONDS = 120.0


class Prompt:
    """An entry of the log: the id of the launch, the text, and the time."""

    __slots__ = ("at", "session", "text")

    def __init__(self, session: str, text: str, at: float) -> None:
        self.session = session
        self.text = text
        self.at = at


def read_turn(path: str) -> Evidence | None:
    """Return the activity by the last line of a chat file that shows one."""
    try:
        lines, _ = tail(path, files.TAIL)
    except OSError:
        return None
    for line in reversed(lines):
        entry = parse(line)
        verdict = _activity_by(entry)
        at = epoch(entry.get("timestamp")) if verdict else None
        if verdict and at is not None:
            state, reason = verdict
            is_early = entry.get("type") == "gemini" and time.time() - at < _ANSWER_SETTLE_SECONDS
            return None if is_early else Evidence("transcript", state, at, detail=reason)
    return None


def _activity_by(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the activity that a line shows, with the reason; None if it shows none."""
    kind = entry.get("type")
    if kind == "error":
        return IDLE, "the turn ended in an error"
    if kind == "info":
        return (IDLE, "the turn was interrupted") if entry.get("content") == _CANCELLED else None
    if kind == "user":
        return (WORKING, "the last line is the user's") if files.is_of_conversation(entry) else None
    if kind != "gemini":
        return None
    if entry.get("toolCalls") or not "".join(files.texts(entry)).strip():
        # The tool may be running, or waiting for a permission.
        return UNKNOWN, "a tool was called"
    return IDLE, "the answer ended"


def has_prompt(text: str, conversation: str, path: str, since: int) -> bool:
    """Tell whether a chat file beyond `since` bytes, or the log since then, has a prompt. Raises OSError."""
    text = text.strip()
    if count_prompts(text, path, since):
        return True
    folder = os.path.dirname(os.path.dirname(path))
    logged = [prompt for prompt in log(folder) if prompt.session == conversation and prompt.text == text]
    return bool(logged) and logged[-1].at > _last_change(path, since)


def count_prompts(text: str, path: str, since: int) -> int:
    """Return how often a chat file has a prompt beyond `since` bytes. Raises OSError."""
    text = text.strip()
    return sum(text in texts for texts in prompts(path, since))


def prompts(path: str, since: int) -> Iterator[tuple[str, ...]]:
    """Yield the user's prompts beyond `since` bytes, without and with files. Raises OSError."""
    for line in lines_since(path, since):
        entry = parse(line) if b'"user"' in line else {}
        if entry.get("type") == "user":
            # If the prompt mentions files, they follow as further parts.
            yield tuple(text.strip() for text in (*list(files.texts(entry))[:1], _text_of(entry)))


def _last_change(path: str, until: int) -> float:
    """Return the time of the last entry before a position in the chat file."""
    with open_regular_file(path) as file:
        file.seek(max(0, until - _LOG_TAIL))
        lines = file.read(min(until, _LOG_TAIL)).split(b"\n")
    for line in reversed(lines):
        entry = parse(line)
        at = epoch(entry.get("timestamp") or entry.get("lastUpdated"))
        if at is not None:
            return at
    return 0.0


def log(folder: str) -> list[Prompt]:
    """Return the prompts at the end of the log of a workspace, the oldest first."""
    try:
        with open_regular_file(os.path.join(folder, "logs.json")) as file:
            since = max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL)
            file.seek(since)
            raw = file.read(_LOG_TAIL)
    except OSError:
        return []
    if since:
        # The file is one JSON list, and the opening brace of each entry has its own line.
        raw = b"[  {\n" + raw.partition(b"\n  {\n")[2]
    try:
        entries = json.loads(raw)
    except (ValueError, RecursionError):
        # Gemini is writing the file.
        return []
    entries = entries if isinstance(entries, list) else []
    return [prompt for entry in entries if (prompt := _parse_prompt(entry))]


def _parse_prompt(entry: object) -> Prompt | None:
    if not isinstance(entry, dict):
        return None
    session, text, at = entry.get("sessionId"), entry.get("message"), epoch(entry.get("timestamp"))
    if not isinstance(session, str) or not isinstance(text, str) or at is None:
        return None
    return Prompt(session, text, at)


def last_prompt(launch_id: str, folder: str) -> Prompt | None:
    """Return the last prompt of a launch, without commands."""
    logged = [prompt for prompt in log(folder) if prompt.session == launch_id]
    prompts = [prompt for prompt in logged if not prompt.text.startswith(("/", "?"))]
    return prompts[-1] if prompts else None


def conversation_of(prompt: Prompt, folder: str) -> str | None:
    """Return the conversation that has a prompt of a launch; None if that is not certain.

    After /clear a new conversation is open, and only its first prompt shows which one. Other launches in the
    workspace may have had the same prompt. This returns none of their conversations, and None while the chat
    file of such a launch does not have the prompt yet.
    """
    logged = log(folder)
    if not any(_is_same(item, prompt) and item.session == prompt.session for item in logged):
        # Gemini is writing the log, so mam cannot tell which other launches had this prompt.
        return None
    foreign = [item for item in logged if item.session != prompt.session]
    try:
        candidates = {
            owner
            for path in files.chats(folder)
            if os.path.getmtime(path) >= prompt.at - 1 and _has_prompt_of(path, prompt)
            if (owner := files.owner_of(path) or _by_name(path, prompt))
        }
    except OSError:
        return None
    if prompt.session in candidates:
        return prompt.session
    if {item.session for item in foreign if _is_same(item, prompt)} - candidates:
        return None
    candidates -= {item.session for item in foreign}
    return candidates.pop() if len(candidates) == 1 else None


def _is_same(item: Prompt, other: Prompt) -> bool:
    return item.text == other.text and abs(item.at - other.at) < _CHOOSING_SECONDS


def _by_name(path: str, prompt: Prompt) -> str | None:
    return prompt.session if path.endswith(f"-{prompt.session[:8]}.jsonl") else None


def _has_prompt_of(path: str, prompt: Prompt) -> bool:
    lines, _ = tail(path, files.TAIL)
    for line in lines:
        entry = parse(line) if b'"user"' in line else {}
        at = epoch(entry.get("timestamp"))
        if entry.get("type") != "user" or at is None or not 0 <= at - prompt.at < _CHOOSING_SECONDS:
            continue
        if prompt.text in (_text_of(entry).strip(), next(files.texts(entry), "").strip()):
            return True
    return False


def read_transcript(path: str, most: int) -> Transcript | None:
    """Return the last turns and the figures from the end of a chat file; None if it cannot be read."""
    try:
        lines, is_whole = tail(path, _LARGEST)
    except OSError:
        return None
    # Gemini writes a message again when it grows, and a list of messages replaces all before it.
    messages: dict[str, dict[str, Any]] = {}
    # What was taken back was paid all the same.
    paid: dict[str, dict[str, Any]] = {}
    for line in lines:
        entry = parse(line)
        is_whole = is_whole and bool(entry)
        remaining = files.messages_in(entry)
        if remaining is not None:
            messages = {str(message.get("id")): message for message in remaining}
            paid |= messages
        elif isinstance(entry.get("$rewindTo"), str):
            ids = list(messages)
            end = ids.index(entry["$rewindTo"]) if entry["$rewindTo"] in ids else 0
            messages = {ident: messages[ident] for ident in ids[:end]}
        elif isinstance(entry.get("id"), str):
            messages[entry["id"]] = paid[entry["id"]] = entry
    shown = [message for message in messages.values() if files.is_of_conversation(message)]
    turns = _turns(shown)
    return Transcript(
        turns[-most:] if most else [],
        token_counts=_token_counts(paid.values()) if is_whole else None,
        **_figures(shown),
    )


def _token_counts(messages: Iterable[dict[str, Any]]) -> list[TokenCount] | None:
    """Return the tokens of each request; None if the record of one is damaged."""
    try:
        return [
            _token_count(message, message["tokens"])
            for message in messages
            if message.get("type") == "gemini" and isinstance(message.get("tokens"), dict)
        ]
    except ValueError:
        return None


def _token_count(message: dict[str, Any], tokens: dict[str, Any]) -> TokenCount:
    from mam.core.token_count import TokenCount

    model, cached = message.get("model"), recorded(tokens, "cached")
    return TokenCount(
        model if isinstance(model, str) else None,
        # What tools of the provider added to the prompt has a number of its own.
        input=recorded(tokens, "input") - cached + recorded(tokens, "tool"),
        output=recorded(tokens, "output") + recorded(tokens, "thoughts"),
        cache_read=cached,
    )


def _turns(messages: list[dict[str, Any]]) -> list[Turn]:
    turns: list[Turn] = []
    for message in messages:
        role, text = "user" if message["type"] == "user" else "assistant", _text_of(message).strip()
        if text:
            add_turn(turns, role, text, message.get("timestamp"))
    return turns


def _figures(messages: list[dict[str, Any]]) -> dict[str, Any]:
    answers = [message for message in messages if message["type"] == "gemini"]
    tokens = [answer["tokens"] for answer in answers if isinstance(answer.get("tokens"), dict)]
    models = [answer["model"] for answer in answers if isinstance(answer.get("model"), str)]
    figures: dict[str, Any] = {"model": models[-1] if models else None}
    if tokens:
        figures |= {
            "tokens_in": sum(_count(item, "input") for item in tokens),
            "tokens_out": sum(_count(item, "output") + _count(item, "thoughts") for item in tokens),
            "tokens_cache_read": sum(_count(item, "cached") for item in tokens),
            "context": _count(tokens[-1], "input"),
            "window": _WINDOW,
        }
    return figures


def _count(tokens: Mapping[str, Any], name: str) -> int:
    return count(tokens.get(name)) or 0


def _text_of(message: Mapping[str, Any]) -> str:
    return "".join(files.texts(message))
