"""What Hermes keeps: one database for all conversations of a home, read and never written here.

A conversation's row says by which source it was begun. mam gives each session a source of its own, so a
sibling's conversation in the same directory is never taken for it. What a tool or a subagent begins carries
the same source: the session's own is the first one, and what follows it where it was left for another.
"""

from __future__ import annotations

import json
import os
import re

from mam.adapters.agents.jsonl import count
from mam.adapters.agents.kind import Transcript, Turn
from mam.adapters.agents.open_regular import open_plain
from mam.adapters.agents.read_only_sqlite import Unreadable, ask
from mam.core.activity import IDLE, UNKNOWN, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

HOME, SOURCE = "HERMES_HOME", "HERMES_SESSION_SOURCE"
ID = re.compile(r"[0-9]{8}_[0-9]{6}_[0-9a-f]{6,32}\Z")
PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_PERSON = "cli"
_MOST = 200
_LONGEST_TEXT = 256 * 1024
# How a conversation ends when the program goes on with the next one, and when it takes up an older one.
_LEFT = ("new_session", "compression", "branched")
_AWAY = "resumed_other"
_INTERRUPTED = "Operation interrupted."
# A row of the next conversation is written after the end of the one before, by the same clock.
_NEXT = """select id, started_at, ended_at, end_reason from sessions
    where id != ? and started_at >= ? and (source = ? or parent_session_id = ?)
    order by started_at limit 1"""


def home_of(environ: Mapping[str, str]) -> str:
    """Return the home that a launch with this environment uses, that of the chosen profile included."""
    user = environ.get("HOME") or os.path.expanduser("~")
    home = os.path.abspath(environ.get(HOME) or os.path.join(user, ".hermes"))
    if is_profile(home):
        return home
    try:
        with open_plain(os.path.join(home, "active_profile")) as file:
            name = file.read(200).decode().strip()
    except (OSError, UnicodeDecodeError):
        return home
    return os.path.join(home, "profiles", name) if PROFILE.match(name) and name != "default" else home


def is_profile(home: str) -> bool:
    """Tell whether a home is that of a profile, as Hermes itself tells it."""
    return os.path.basename(os.path.dirname(home)) == "profiles"


def _ask(stores: Mapping[str, str], question: str, *values: object) -> list[Any]:
    home = stores.get(HOME)
    return ask(os.path.join(home, "state.db"), question, *values) if home else []


def has_history(conversation: str, stores: Mapping[str, str]) -> bool | None:
    """Tell whether something was said in a conversation; None where nobody can say."""
    if not ID.match(conversation) or not stores.get(HOME):
        return None
    question = """select 1 from sessions join messages on messages.session_id = sessions.id
        where sessions.id = ? limit 1"""
    try:
        return bool(_ask(stores, question, conversation))
    except Unreadable:
        return None


def current(stores: Mapping[str, str]) -> str | None:
    """Return the conversation that the session of this source has now; None where that is not known."""
    source = stores.get(SOURCE)
    if not source:
        return None
    try:
        return _follow(stores, source)
    except Unreadable:
        return None


def _follow(stores: Mapping[str, str], source: str) -> str | None:
    first = "select id, started_at, ended_at, end_reason from sessions where source = ? order by started_at"
    found = _ask(stores, f"{first} limit 1", source)
    for _ in range(_MOST):
        if not found or not ID.match(str(found[0]["id"])):
            return None
        one = found[0]
        if one["end_reason"] == _AWAY:
            return None
        if one["end_reason"] not in _LEFT:
            return str(one["id"])
        found = _ask(stores, _NEXT, one["id"], one["ended_at"], source, one["id"])
    return None


def begun_in(workspace: str, stores: Mapping[str, str]) -> list[str]:
    """Return the session's own conversation; for a session that has none, a person's of this directory."""
    own = current(stores)
    if own is not None:
        return [own] if has_history(own, stores) else []
    question = """select sessions.id, max(messages.timestamp) as last from sessions
        join messages on messages.session_id = sessions.id
        where sessions.source = ? and sessions.cwd = ? and sessions.parent_session_id is null
        group by sessions.id order by last desc limit ?"""
    try:
        rows = _ask(stores, question, _PERSON, workspace, _MOST)
    except Unreadable:
        return []
    return [str(row["id"]) for row in rows if ID.match(str(row["id"]))]


def read_turn(conversation: str, stores: Mapping[str, str]) -> Evidence | None:
    """Return what the last message of a conversation says about the turn."""
    question = """select role, finish_reason, tool_calls, timestamp, substr(content, 1, 100) as content
        from messages where session_id = ? and active = 1 order by timestamp desc, id desc limit 1"""
    try:
        found = _ask(stores, question, conversation)
    except Unreadable:
        return None
    if not found or not isinstance(found[0]["timestamp"], (int, float)):
        return None
    last = found[0]
    state, why = _tell(last)
    return Evidence("transcript", state, float(last["timestamp"]), detail=why) if state != UNKNOWN else None


def _tell(last: Any) -> tuple[str, str]:
    if last["role"] == "user":
        return WORKING, "the last message is of the user"
    if last["role"] == "tool":
        return WORKING, "a tool has answered"
    if last["role"] != "assistant":
        return UNKNOWN, ""
    if last["tool_calls"]:
        return WORKING, "a tool is called"
    if last["finish_reason"] is None or last["content"] == _INTERRUPTED:
        return IDLE, "the turn was interrupted"
    return IDLE, f"the answer ended ({last['finish_reason']})"


def last_message(stores: Mapping[str, str]) -> int:
    """Return the number of the newest message of all conversations."""
    try:
        return int(_ask(stores, "select max(id) as last from messages")[0]["last"] or 0)
    except (Unreadable, IndexError, TypeError, ValueError):
        return 0


def prompts(conversation: str, stores: Mapping[str, str], since: int) -> Iterator[str]:
    """Yield what the user said in a conversation after a message; Unreadable where nobody can say."""
    question = "select content from messages where session_id = ? and id > ? and role = 'user' order by id"
    for row in _ask(stores, question, conversation, since):
        yield from _texts(row["content"])


def _texts(content: object) -> Iterator[str]:
    """Yield the texts of a message: a plain one, or one in parts, which is kept as JSON."""
    if not isinstance(content, str):
        return
    yield content
    if content.startswith("[{"):
        try:
            parts = json.loads(content)
        except (ValueError, RecursionError):
            return
        for part in parts:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part["text"]


def read_transcript(conversation: str, stores: Mapping[str, str], turns: int) -> Transcript | None:
    """Return the last turns, and model and tokens as the conversation's row has them."""
    facts = "select model, input_tokens, output_tokens from sessions where id = ?"
    said = """select role, substr(content, 1, ?) as content, timestamp from messages
        where session_id = ? and active = 1 and role in ('user', 'assistant') and content != ''
        order by timestamp desc, id desc limit ?"""
    try:
        found = _ask(stores, facts, conversation)
        rows = _ask(stores, said, _LONGEST_TEXT, conversation, max(0, turns)) if found else []
    except Unreadable:
        return None
    if not found:
        return None
    said_last = [Turn(str(row["role"]), str(row["content"]), _stamp(row["timestamp"])) for row in rows]
    return Transcript(
        said_last[::-1],
        model=found[0]["model"],
        tokens_in=count(found[0]["input_tokens"]),
        tokens_out=count(found[0]["output_tokens"]),
    )


def _stamp(seconds: object) -> str | None:
    from mam.core.times import stamp

    return stamp(seconds) if isinstance(seconds, (int, float)) else None
