"""Reading the database of opencode, which has all conversations.

A message is a row of one table; its texts, tools and steps are rows of another. Both hold JSON. The
conversation of a subagent has a parent.
"""

from __future__ import annotations

import os
import re

from mam.adapters.agents.jsonl import count, parse, recorded, seconds
from mam.adapters.agents.kind import Transcript, add_turn
from mam.adapters.agents.read_only_sqlite import Unreadable, query
from mam.core.activity import IDLE, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from mam.adapters.agents.kind import Turn
    from mam.core.token_count import TokenCount

DATA, DATABASE = "XDG_DATA_HOME", "OPENCODE_DB"
ID = re.compile(r"ses_[0-9A-Za-z]{8,64}\Z")
_MOST = 200
# The longest prompt has 1 MB, and JSON may need six bytes for one of its bytes.
_LONGEST = 8 * 1024 * 1024
_LONGEST_TEXT = 256 * 1024
# After an answer that ends like this, the turn continues or may continue.
_GOES_ON = ("tool-calls", "unknown")
_IN_MEMORY = ":memory:"
# The tokens of a conversation, by the names of their columns, and where the tokens of an answer have them.
_TOKENS = {
    "tokens_input": "$.tokens.input",
    "tokens_output": "$.tokens.output",
    "tokens_reasoning": "$.tokens.reasoning",
    "tokens_cache_read": "$.tokens.cache.read",
    "tokens_cache_write": "$.tokens.cache.write",
}


def stores_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the folder of the data, and the database if the caller chose one."""
    home = environ.get("HOME") or os.path.expanduser("~")
    data = environ.get(DATA) or ""
    # The XDG specification says to ignore a relative path.
    stores = {DATA: data if os.path.isabs(data) else os.path.join(home, ".local", "share")}
    if environ.get(DATABASE):
        chosen = environ[DATABASE]
        is_path = chosen != _IN_MEMORY
        stores[DATABASE] = os.path.join(stores[DATA], "opencode", chosen) if is_path else chosen
    return stores


def database(stores: Mapping[str, str]) -> str | None:
    """Return the path that the database has or would have; None if it has none or mam does not know it."""
    chosen = stores.get(DATABASE)
    if chosen:
        return None if chosen == _IN_MEMORY else chosen
    return os.path.join(stores[DATA], "opencode", "opencode.db") if stores.get(DATA) else None


def _query(stores: Mapping[str, str], sql: str, *values: object) -> list[Any]:
    path = database(stores)
    if path is None:
        raise Unreadable("the path of the database is unknown")
    return query(path, sql, *values)


def has_history(conversation: str, stores: Mapping[str, str]) -> bool | None:
    """Tell whether a conversation has a message; None if the database cannot be read."""
    if not ID.match(conversation):
        return None
    sql = """select 1 from session join message on message.session_id = session.id
        where session.id = ? limit 1"""
    try:
        return bool(_query(stores, sql, conversation))
    except Unreadable:
        return None


def conversations_in(workspace: str, stores: Mapping[str, str]) -> list[str]:
    """Return the conversations of a directory that have a message, newest first."""
    sql = """select id from session
        where directory = ? and parent_id is null and time_archived is null
        and exists (select 1 from message where message.session_id = session.id)
        order by time_updated desc, id limit ?"""
    try:
        rows = _query(stores, sql, workspace, _MOST)
    except Unreadable:
        return []
    return [str(row["id"]) for row in rows if ID.match(str(row["id"]))]


def read_turn(conversation: str, stores: Mapping[str, str]) -> Evidence | None:
    """Return that the turn has ended, if the last message shows it.

    The database cannot show that a turn continues: an answer that was killed, or whose tool was refused,
    looks as if it continued.
    """
    sql = """select data from message where session_id = ? and length(data) <= ?
        order by time_created desc, id desc limit 1"""
    try:
        rows = _query(stores, sql, conversation, _LONGEST)
    except Unreadable:
        return None
    message = parse(rows[0]["data"]) if rows else {}
    at = _at(message, "completed")
    if message.get("role") != "assistant" or at is None:
        return None
    if message.get("error"):
        return Evidence("transcript", IDLE, at, detail="the turn ended in an error")
    finish = message.get("finish")
    if not isinstance(finish, str) or finish in _GOES_ON:
        return None
    return Evidence("transcript", IDLE, at, detail=f"the answer ended ({finish})")


def last_message(conversation: str, stores: Mapping[str, str]) -> int:
    """Return the time of the newest message of a conversation, in milliseconds."""
    try:
        rows = _query(
            stores, "select max(time_created) as last from message where session_id = ?", conversation
        )
    except Unreadable:
        return 0
    return (count(rows[0]["last"]) or 0) if rows else 0


def prompts(conversation: str, stores: Mapping[str, str], since: int) -> Iterator[str]:
    """Yield the user's prompts in a conversation after the time `since`. Raises Unreadable."""
    for _, message, texts in _messages(conversation, stores, "time_created > ?", since):
        if message.get("role") == "user":
            yield from texts


def _messages(
    conversation: str, stores: Mapping[str, str], condition: str, value: int, most: int = _MOST
) -> list[tuple[str, dict[str, Any], list[str]]]:
    """Return the id, the facts and the texts of the last messages of a conversation, oldest first."""
    messages_sql = f"""select id, data from message where session_id = ? and {condition} and length(data) <= ?
        order by time_created desc, id desc limit ?"""  # noqa: S608
    rows = _query(stores, messages_sql, conversation, value, _LONGEST, most)
    marks = ",".join("?" * len(rows))
    parts_sql = f"""select message_id, data from part
        where message_id in ({marks}) and length(data) <= ? order by id"""  # noqa: S608
    texts: dict[str, list[str]] = {}
    for part_row in _query(stores, parts_sql, *[row["id"] for row in rows], _LONGEST) if rows else []:
        part = parse(part_row["data"])
        if part.get("type") == "text" and isinstance(part.get("text"), str) and not part.get("synthetic"):
            texts.setdefault(part_row["message_id"], []).append(part["text"])
    return [(row["id"], parse(row["data"]), texts.get(row["id"], [])) for row in reversed(rows)]


def read_transcript(conversation: str, stores: Mapping[str, str], most: int) -> Transcript | None:
    """Return the last turns, the model of the last answer, and the tokens of the whole conversation."""
    facts = f"select {', '.join(_TOKENS)} from session where id = ?"  # noqa: S608
    try:
        rows = _query(stores, facts, conversation)
        messages = _messages(conversation, stores, "time_created > ?", 0) if rows else []
        counts = _token_counts(conversation, stores, dict(rows[0])) if rows else None
    except Unreadable:
        return None
    if not rows:
        return None
    turns: list[Turn] = []
    for _, message, texts in messages:
        _add_turn(turns, message, "\n".join(texts).strip()[:_LONGEST_TEXT])
    tokens = rows[0]
    return Transcript(
        turns[-most:] if most > 0 else [],
        model=_last_value(messages, _model),
        tokens_in=_sum(tokens["tokens_input"], tokens["tokens_cache_read"], tokens["tokens_cache_write"]),
        tokens_out=_sum(tokens["tokens_output"], tokens["tokens_reasoning"]),
        tokens_cache_read=count(tokens["tokens_cache_read"]),
        tokens_cache_write=count(tokens["tokens_cache_write"]),
        context=_last_value(messages, _context),
        token_counts=counts,
    )


def _token_counts(
    conversation: str, stores: Mapping[str, str], totals: dict[str, Any]
) -> list[TokenCount] | None:
    """Return the tokens of each answer; None if they are not those of the whole conversation.

    A fork has the answers of the conversation that it copies, and opencode of some versions forgets what it
    removes. Then the totals differ. Raises Unreadable.
    """
    columns = ", ".join(f"json_extract(data, '{path}') as {name}" for name, path in _TOKENS.items())
    sql = f"""select json_extract(data, '$.providerID') as provider, json_extract(data, '$.modelID') as model,
        {columns} from message where session_id = ? and
        case when typeof(data) = 'text' and length(data) <= ? and json_valid(data)
        then json_extract(data, '$.role') = 'assistant' else 0 end"""  # noqa: S608
    answers = [dict(row) for row in _query(stores, sql, conversation, _LONGEST)]
    try:
        counts = [_token_count(answer) for answer in answers]
        sums = {name: sum(recorded(answer, name) for answer in answers) for name in _TOKENS}
        is_whole = all(sums[name] == recorded(totals, name) for name in _TOKENS)
    except ValueError:
        return None
    return counts if is_whole else None


def _token_count(answer: dict[str, Any]) -> TokenCount:
    from mam.core.token_count import TokenCount

    return TokenCount(
        _model({"providerID": answer["provider"], "modelID": answer["model"]}),
        input=recorded(answer, "tokens_input"),
        output=recorded(answer, "tokens_output") + recorded(answer, "tokens_reasoning"),
        cache_read=recorded(answer, "tokens_cache_read"),
        cache_write=recorded(answer, "tokens_cache_write"),
    )


def _add_turn(turns: list[Turn], message: dict[str, Any], text: str) -> None:
    role = message.get("role")
    if role not in ("user", "assistant") or not text:
        return
    # In opencode each step of an answer that uses tools is a message.
    add_turn(turns, role, text, _stamp(_at(message, "created")))


def _last_value(messages: list[tuple[str, dict[str, Any], list[str]]], read: Any) -> Any:
    answers = [message for _, message, _ in messages if message.get("role") == "assistant"]
    return next((value for message in reversed(answers) if (value := read(message)) is not None), None)


def _model(message: dict[str, Any]) -> str | None:
    provider, model = message.get("providerID"), message.get("modelID")
    return f"{provider}/{model}" if isinstance(provider, str) and isinstance(model, str) else None


def _context(message: dict[str, Any]) -> int | None:
    """Return how many tokens the request had; an interrupted answer has none."""
    tokens = message.get("tokens")
    cache = tokens.get("cache") if isinstance(tokens, dict) else None
    if not isinstance(tokens, dict) or not isinstance(cache, dict):
        return None
    return _sum(tokens.get("input"), cache.get("read"), cache.get("write")) or None


def _sum(*values: object) -> int | None:
    numbers = [count(value) for value in values]
    return sum(number for number in numbers if number) if None not in numbers else None


def _at(message: dict[str, Any], name: str) -> float | None:
    times = message.get("time")
    at = times.get(name) if isinstance(times, dict) else None
    return seconds(at)


def _stamp(seconds: float | None) -> str | None:
    from mam.core.times import stamp

    return stamp(seconds) if seconds is not None else None
