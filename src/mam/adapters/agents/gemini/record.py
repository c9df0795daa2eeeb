"""What Gemini CLI records of a conversation: turns in the chat file, prompts in the directory's log as well.

The log has a prompt as soon as Enter was taken, the chat file only once a model was chosen for it. The log
goes on under the id of the launch, whatever conversation is open by then.
"""

from __future__ import annotations

import json
import os
import time

from mam.adapters.agents.gemini import files
from mam.adapters.agents.jsonl import count, epoch, lines_since, parse, tail
from mam.adapters.agents.kind import Transcript, add_turn
from mam.adapters.agents.open_regular import open_plain
from mam.core.activity import IDLE, UNKNOWN, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from mam.adapters.agents.kind import Turn

_LARGEST = 8 * 1024 * 1024
_LOG_TAIL = 256 * 1024
# All models of the program have it.
_WINDOW = 1_048_576
_CANCELLED = "Request cancelled."
# An answer is recorded before a tool that it asks for: only one that stays the last for a while is the end.
_SETTLES = 3.0
# From the log to the chat file: a model is chosen in between, by a request of its own.
_CHOOSING_SECONDS = 120.0


class Prompt:
    """A line of the log: what was submitted, and when."""

    __slots__ = ("at", "session", "text")

    def __init__(self, session: str, text: str, at: float) -> None:
        self.session = session
        self.text = text
        self.at = at


def read_turn(path: str) -> Evidence | None:
    """Return what the last telling line of a chat file says about the turn."""
    try:
        lines, _ = tail(path, files.TAIL)
    except OSError:
        return None
    for line in reversed(lines):
        entry = parse(line)
        told = _tell(entry)
        at = epoch(entry.get("timestamp")) if told else None
        if told and at is not None:
            is_early = entry.get("type") == "gemini" and time.time() - at < _SETTLES
            return None if is_early else Evidence("transcript", told[0], at, detail=told[1])
    return None


def _tell(entry: Mapping[str, Any]) -> tuple[str, str] | None:
    kind = entry.get("type")
    if kind == "error":
        return IDLE, "the turn ended in an error"
    if kind == "info":
        return (IDLE, "the turn was interrupted") if entry.get("content") == _CANCELLED else None
    if kind == "user":
        return (WORKING, "last line is of the user") if files.is_said(entry) else None
    if kind != "gemini":
        return None
    if entry.get("toolCalls") or not "".join(files.texts(entry)).strip():
        # It may run, or wait for somebody's consent.
        return UNKNOWN, "a tool was called"
    return IDLE, "the answer ended"


def has_prompt(text: str, conversation: str, path: str, since: int) -> bool:
    """Tell whether a chat file beyond `since` bytes, or the log since, has a prompt. Raises OSError."""
    wanted = text.strip()
    if any(one == wanted for one in prompts(path, since)):
        return True
    folder = os.path.dirname(os.path.dirname(path))
    logged = [one for one in log(folder) if one.session == conversation and one.text == wanted]
    return bool(logged) and logged[-1].at > _last_change(path, since)


def prompts(path: str, since: int) -> Iterator[str]:
    """Yield what the user said in the whole lines beyond `since` bytes. Raises OSError."""
    for line in lines_since(path, since):
        entry = parse(line) if b'"user"' in line else {}
        if entry.get("type") == "user":
            # Files that it mentions follow as further parts.
            yield from (one.strip() for one in (*list(files.texts(entry))[:1], _words(entry)))


def _last_change(path: str, until: int) -> float:
    """Return the time of the last entry before a place in the chat file."""
    with open_plain(path) as file:
        file.seek(max(0, until - _LOG_TAIL))
        lines = file.read(min(until, _LOG_TAIL)).split(b"\n")
    for line in reversed(lines):
        entry = parse(line)
        at = epoch(entry.get("timestamp") or entry.get("lastUpdated"))
        if at is not None:
            return at
    return 0.0


def log(folder: str) -> list[Prompt]:
    """Return the prompts at the end of a directory's log, the oldest first."""
    try:
        with open_plain(os.path.join(folder, "logs.json")) as file:
            since = max(0, file.seek(0, os.SEEK_END) - _LOG_TAIL)
            file.seek(since)
            raw = file.read(_LOG_TAIL)
    except OSError:
        return []
    if since:
        # The file is one list, with an entry's brace on a line of its own.
        raw = b"[  {\n" + raw.partition(b"\n  {\n")[2]
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        # It is being written.
        return []
    return [one for entry in (found if isinstance(found, list) else ()) if (one := _prompt(entry))]


def _prompt(entry: object) -> Prompt | None:
    if not isinstance(entry, dict):
        return None
    session, text, at = entry.get("sessionId"), entry.get("message"), epoch(entry.get("timestamp"))
    if not isinstance(session, str) or not isinstance(text, str) or at is None:
        return None
    return Prompt(session, text, at)


def last_prompt(launched: str, folder: str) -> Prompt | None:
    """Return what was last submitted in a launch, commands aside."""
    said = [one for one in log(folder) if one.session == launched and not one.text.startswith(("/", "?"))]
    return said[-1] if said else None


def holder_of(prompt: Prompt, folder: str) -> str | None:
    """Return the conversation that has a prompt of a launch; None where that is not plain.

    After /clear a new conversation is open, and only its first prompt shows which one. The neighbours in the
    directory may have said the same: none of theirs is taken, and none at all while one of them may have it.
    """
    logged = log(folder)
    if not any(_is_same(one, prompt) and one.session == prompt.session for one in logged):
        # It is being written, so who else said this is not known.
        return None
    others = [one for one in logged if one.session != prompt.session]
    try:
        found = {
            owner
            for path in files.chats(folder)
            if os.path.getmtime(path) >= prompt.at - 1 and _holds(path, prompt)
            if (owner := files.owner_of(path) or _by_name(path, prompt))
        }
    except OSError:
        return None
    if prompt.session in found:
        return prompt.session
    if {one.session for one in others if _is_same(one, prompt)} - found:
        return None
    found -= {one.session for one in others}
    return found.pop() if len(found) == 1 else None


def _is_same(one: Prompt, other: Prompt) -> bool:
    return one.text == other.text and abs(one.at - other.at) < _CHOOSING_SECONDS


def _by_name(path: str, prompt: Prompt) -> str | None:
    return prompt.session if path.endswith(f"-{prompt.session[:8]}.jsonl") else None


def _holds(path: str, prompt: Prompt) -> bool:
    lines, _ = tail(path, files.TAIL)
    for line in lines:
        entry = parse(line) if b'"user"' in line else {}
        at = epoch(entry.get("timestamp"))
        if entry.get("type") != "user" or at is None or not 0 <= at - prompt.at < _CHOOSING_SECONDS:
            continue
        if prompt.text in (_words(entry).strip(), next(files.texts(entry), "").strip()):
            return True
    return False


def read_transcript(path: str, most: int) -> Transcript | None:
    """Return the last turns and the figures of the end of a chat file; None where it cannot be read."""
    try:
        lines, _ = tail(path, _LARGEST)
    except OSError:
        return None
    # A message is written again when it grows, and lists take the place of all before them.
    messages: dict[str, dict[str, Any]] = {}
    for line in lines:
        entry = parse(line)
        left = files.messages_in(entry)
        if left is not None:
            messages = {str(one.get("id")): one for one in left}
        elif isinstance(entry.get("$rewindTo"), str):
            ids = list(messages)
            kept = ids.index(entry["$rewindTo"]) if entry["$rewindTo"] in ids else 0
            messages = {one: messages[one] for one in ids[:kept]}
        elif isinstance(entry.get("id"), str):
            messages[entry["id"]] = entry
    said = [one for one in messages.values() if files.is_said(one)]
    turns = _turns(said)
    return Transcript(turns[-most:] if most else [], **_figures(said))


def _turns(messages: list[dict[str, Any]]) -> list[Turn]:
    turns: list[Turn] = []
    for one in messages:
        role, words = "user" if one["type"] == "user" else "assistant", _words(one).strip()
        if words:
            add_turn(turns, role, words, one.get("timestamp"))
    return turns


def _figures(messages: list[dict[str, Any]]) -> dict[str, Any]:
    answers = [one for one in messages if one["type"] == "gemini"]
    used = [one["tokens"] for one in answers if isinstance(one.get("tokens"), dict)]
    models = [one["model"] for one in answers if isinstance(one.get("model"), str)]
    figures: dict[str, Any] = {"model": models[-1] if models else None}
    if used:
        figures |= {
            "tokens_in": sum(_count(one, "input") for one in used),
            "tokens_out": sum(_count(one, "output") + _count(one, "thoughts") for one in used),
            "context": _count(used[-1], "input"),
            "window": _WINDOW,
        }
    return figures


def _count(tokens: Mapping[str, Any], name: str) -> int:
    return count(tokens.get(name)) or 0


def _words(message: Mapping[str, Any]) -> str:
    return "".join(files.texts(message))
