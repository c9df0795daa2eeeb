"""Reading the database of Hermes, which has all conversations of a home.

The row of a conversation names its source. mam gives each session a different source, so it never confuses
the conversations of two sessions in one directory. A conversation that a tool or a subagent begins has the
same source. So the session's own conversation is the first one with the source, or the one that followed it
when Hermes went on to another conversation.
"""

from __future__ import annotations

import json
import os
import re

from mam.adapters.agents.jsonl import count, recorded, seconds
from mam.adapters.agents.kind import Transcript, Turn
from mam.adapters.agents.open_regular import open_regular_file
from mam.adapters.agents.read_only_sqlite import Unreadable, query
from mam.core.activity import IDLE, UNKNOWN, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from mam.core.token_count import TokenCount

HOME, SOURCE = "HERMES_HOME", "HERMES_SESSION_SOURCE"
ID = re.compile(r"[0-9]{8}_[0-9]{6}_[0-9a-f]{6,32}\Z")
PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}\Z")
_PERSON = "cli"
_MOST = 200
_LONGEST_TEXT = 256 * 1024
# The reasons with which a conversation ends if Hermes begins the next one, or resumes an older one.
_REPLACED = ("new_session", "compression", "branched")
_RESUMED_OTHER = "resumed_other"
_INTERRUPTED = "Operation interrupted."
# The tokens of a conversation; in `input_tokens` is nothing of the cache. Older versions have only some.
_TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
# The table with the tokens of each model. Versions without it do not tell whether there were several.
_BY_MODEL = "session_model_usage"
# Hermes writes the row of the next conversation after the end of the one before, by the same clock.
_NEXT = """select id, started_at, ended_at, end_reason from sessions
    where id != ? and started_at >= ? and (source = ? or parent_session_id = ?)
    order by started_at limit 1"""


def home_of(environ: Mapping[str, str]) -> str:
    """Return the home that a launch with this environment uses; a profile has its own home."""
    user = environ.get("HOME") or os.path.expanduser("~")
    home = os.path.abspath(environ.get(HOME) or os.path.join(user, ".hermes"))
    if is_profile(home):
        return home
    try:
        with open_regular_file(os.path.join(home, "active_profile")) as file:
            name = file.read(200).decode().strip()
    except (OSError, UnicodeDecodeError):
        return home
    return os.path.join(home, "profiles", name) if PROFILE.match(name) and name != "default" else home


def is_profile(home: str) -> bool:
    """Tell whether a home is that of a profile, by the same rule as Hermes."""
    return os.path.basename(os.path.dirname(home)) == "profiles"


def _query(stores: Mapping[str, str], sql: str, *values: object) -> list[Any]:
    home = stores.get(HOME)
    return query(os.path.join(home, "state.db"), sql, *values) if home else []


def has_history(conversation: str, stores: Mapping[str, str]) -> bool | None:
    """Tell whether a conversation has a message; None if the database cannot be read."""
    if not ID.match(conversation) or not stores.get(HOME):
        return None
    sql = """select 1 from sessions join messages on messages.session_id = sessions.id
        where sessions.id = ? limit 1"""
    try:
        return bool(_query(stores, sql, conversation))
    except Unreadable:
        return None


def current(stores: Mapping[str, str]) -> str | None:
    """Return the present conversation of the session with this source; None if mam does not know it."""
    source = stores.get(SOURCE)
    if not source:
        return None
    try:
        return _follow_replacements(stores, source)
    except Unreadable:
        return None


def _follow_replacements(stores: Mapping[str, str], source: str) -> str | None:
    """Return the last conversation of the chain that begins with the first one of the source."""
    first = "select id, started_at, ended_at, end_reason from sessions where source = ? order by started_at"
    rows = _query(stores, f"{first} limit 1", source)
    for _ in range(_MOST):
        if not rows or not ID.match(str(rows[0]["id"])):
            return None
        row = rows[0]
        if row["end_reason"] == _RESUMED_OTHER:
            return None
        if row["end_reason"] not in _REPLACED:
            return str(row["id"])
        rows = _query(stores, _NEXT, row["id"], row["ended_at"], source, row["id"])
    return None


def conversations_in(workspace: str, stores: Mapping[str, str]) -> list[str]:
    """Return the conversation of the session; without one, those that a person began in this directory."""
    conversation = current(stores)
    if conversation is not None:
        return [conversation] if has_history(conversation, stores) else []
    sql = """select sessions.id, max(messages.timestamp) as last from sessions
        join messages on messages.session_id = sessions.id
        where sessions.source = ? and sessions.cwd = ? and sessions.parent_session_id is null
        group by sessions.id order by last desc limit ?"""
    try:
        rows = _query(stores, sql, _PERSON, workspace, _MOST)
    except Unreadable:
        return []
    return [str(row["id"]) for row in rows if ID.match(str(row["id"]))]


def read_turn(conversation: str, stores: Mapping[str, str]) -> Evidence | None:
    """Return the activity by the last message of a conversation."""
    sql = """select role, finish_reason, tool_calls, timestamp, substr(content, 1, 100) as content
        from messages where session_id = ? and active = 1 order by timestamp desc, id desc limit 1"""
    try:
        rows = _query(stores, sql, conversation)
    except Unreadable:
        return None
    at = _plausible(rows[0]["timestamp"]) if rows else None
    if at is None:
        return None
    state, reason = _activity_by(rows[0])
    return Evidence("transcript", state, at, detail=reason) if state != UNKNOWN else None


def _plausible(timestamp: object) -> float | None:
    is_time = isinstance(timestamp, (int, float)) and seconds(timestamp * 1000) is not None
    return float(timestamp) if is_time else None  # type: ignore[arg-type]


def _activity_by(last: Any) -> tuple[str, str]:
    if last["role"] == "user":
        return WORKING, "the last message is the user's"
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
        return int(_query(stores, "select max(id) as last from messages")[0]["last"] or 0)
    except (Unreadable, IndexError, TypeError, ValueError):
        return 0


def prompts(conversation: str, stores: Mapping[str, str], since: int) -> Iterator[str]:
    """Yield the user's prompts in a conversation after the message `since`. Raises Unreadable."""
    sql = "select content from messages where session_id = ? and id > ? and role = 'user' order by id"
    for row in _query(stores, sql, conversation, since):
        yield from _texts(row["content"])


def _texts(content: object) -> Iterator[str]:
    """Yield the texts of a message: Hermes stores a text as it is, and a list of parts as JSON."""
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
    """Return the last turns, and the model and the tokens from the row of the conversation."""
    messages = """select role, substr(content, 1, ?) as content, timestamp from messages
        where session_id = ? and active = 1 and role in ('user', 'assistant') and content != ''
        order by timestamp desc, id desc limit ?"""
    try:
        sessions = _query(stores, "select * from sessions where id = ?", conversation)
        rows = _query(stores, messages, _LONGEST_TEXT, conversation, max(0, turns)) if sessions else []
        counts = _token_counts(conversation, stores, dict(sessions[0])) if sessions else None
    except Unreadable:
        return None
    if not sessions:
        return None
    newest_first = [Turn(str(row["role"]), str(row["content"]), _stamp(row["timestamp"])) for row in rows]
    facts = dict(sessions[0])
    tokens_in, read, written = (count(facts.get(name)) for name in (_TOKENS[0], *_TOKENS[2:]))
    return Transcript(
        newest_first[::-1],
        model=facts.get("model"),
        tokens_in=None if tokens_in is None else tokens_in + (read or 0) + (written or 0),
        tokens_out=count(facts.get("output_tokens")),
        tokens_cache_read=read,
        tokens_cache_write=written,
        token_counts=counts,
    )


def _token_counts(
    conversation: str, stores: Mapping[str, str], totals: dict[str, Any]
) -> list[TokenCount] | None:
    """Return the tokens of each model; None if Hermes has not recorded those of all. Raises Unreadable.

    The table also has the requests of side tasks, such as a title. The totals do not have these.
    """
    if not _query(stores, "select 1 from sqlite_master where type = 'table' and name = ?", _BY_MODEL):
        return None
    sql = f"select * from {_BY_MODEL} where session_id = ?"  # noqa: S608
    used = [dict(row) for row in _query(stores, sql, conversation)]
    try:
        counts = [_token_count(row) for row in used]
        own = [row for row in used if not row.get("task")]
        is_whole = all(sum(recorded(row, name) for row in own) == recorded(totals, name) for name in _TOKENS)
    except ValueError:
        return None
    return counts if is_whole else None


def _token_count(used: dict[str, Any]) -> TokenCount:
    from mam.core.token_count import TokenCount

    model, requests = used.get("model"), used.get("api_call_count")
    return TokenCount(
        model if isinstance(model, str) else None,
        **{name.removesuffix("_tokens"): recorded(used, name) for name in _TOKENS},
        is_one_request=requests == 1,
    )


def _stamp(seconds: object) -> str | None:
    from mam.core.times import stamp

    return stamp(seconds) if isinstance(seconds, (int, float)) else None
