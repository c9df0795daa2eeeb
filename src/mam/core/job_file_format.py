"""The file of a job, in the layout of the original system: how it is written and parsed. Pure.

The file only shows a job; the truth is in the database. A file whose job is not in the database was written
by the original system. mam imports it when something happens to its job.
"""

from __future__ import annotations

from mam.core import job_event as events
from mam.core import job_rules as rules
from mam.core import record_limits
from mam.core.safe_text import one_line
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# The fields of a job beside its state, with their defaults.
DEFAULTS: dict[str, Any] = {
    "agent": "claude",
    "agent_session": None,
    "type": rules.ONCE,
    "workdir": None,
    "command": None,
    "broker": None,
    "topic_prefix": events.PREFIX,
    "timeout_sec": rules.TIMEOUT_SECONDS,
    "idle_timeout_sec": rules.IDLE_SECONDS,
    "expected_artifacts": [],
    "validate": None,
    "validation": None,
    "reviewer": None,
    "reviewer_session": None,
    "max_rounds": None,
    "round": 1,
    "permissions": None,
    "created_by": "user",
    "registry_dir": None,
    "logs_dir": None,
    "root": None,
    "started_at": None,
    "finished_at": None,
    "terminal_event": None,
    "terminal_detail": None,
    "reason": None,
}
_HEAD = ("schema_version", "job_id", "status", "created_at", "updated_at", "prompt")
# Types of the fields whose default is None and whose value is not a text.
_KINDS: dict[str, type] = {"broker": dict, "validation": dict, "max_rounds": int, "command": list}
# Further facts that the ledger keeps of a job and its record does not show, by their types.
_TEXTS = (
    *("message_id", "worker_session_id", "reviewer_session_id", "claim", "turn", "program"),
    *("activity", "waiting_for", "asks", "parked_from"),
)
_TIMES = ("began", "prompted_at", "activity_at", "worked_at", "turn_told", "nudged_at")
_FLAGS = ("trust", "mcp", "was_held")
# A line of a log file has its data up to this size, and of bigger data so many short values.
LARGEST_LINE = 8 * 1024
_LONGEST_SHORT, _MOST_SHORT = 200, 20
_LONGEST_SECONDS, _LAST_TIME, _LONGEST_TOKEN = 1e9, 253402300800.0, 1024
_TAIL = ("attempt", "last_seq", "last_event_at", "session_id", "auth_token")


def record(
    job_id: str,
    prompt: str,
    data: dict[str, Any],
    *,
    status: rules.JobStatus,
    attempt: int,
    last_seq: int,
    session_id: str | None,
    created_at: float,
    updated_at: float,
    last_event_at: float,
) -> dict[str, Any]:
    """Return the document of a job. It never holds the token, nor fields that only timers need."""
    return {
        "schema_version": events.SCHEMA,
        "job_id": job_id,
        "status": status,
        "created_at": stamp(created_at),
        "updated_at": stamp(updated_at),
        "prompt": prompt,
        **{key: data.get(key, value) for key, value in DEFAULTS.items()},
        "attempt": attempt,
        "last_seq": last_seq,
        "last_event_at": stamp(last_event_at),
        "session_id": session_id,
        "auth_token": None,
    }


def line_for_file(line: dict[str, Any], size: int) -> dict[str, Any]:
    """Return a line of a job's log as its files have it; `size` is about how long the line is.

    Big data is only in the ledger. The line keeps what is short, and says how much is left out.
    """
    if size <= LARGEST_LINE:
        return line
    data = {key: value for key, value in line["data"].items() if _is_short(value)}
    if len(data) > _MOST_SHORT:
        data = {key: data[key] for key in ("attempt", "hmac_sig") if key in data}
    see = f"mam job logs {line['job_id']}"
    return {**line, "data": {**data, "omitted": {"bytes": size, "see": see}}}


def _is_short(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_SHORT
    return value is None or isinstance(value, (bool, int, float))


def parse_record(document: object) -> dict[str, Any] | None:
    """Return a record of the original system in the form of `record`, or None if it is not a record.

    Unlike `record`, the result holds the `auth_token`. A default replaces every value of a wrong type,
    because anybody may have written the file.
    """
    if not isinstance(document, dict) or not events.is_job_id(document.get("job_id")):
        return None
    if document.get("status") not in tuple(rules.JobStatus) or document.get("schema_version") != 1:
        return None
    defaults = {**dict.fromkeys((*_HEAD, *_TAIL)), **DEFAULTS}
    fields = {key: _fitting(key, document.get(key), default) for key, default in defaults.items()}
    fields |= {key: document[key] for key in ("schema_version", "job_id", "status")}
    prompt = document.get("prompt")
    text = prompt.encode("utf-8", "replace").decode() if isinstance(prompt, str) else ""
    fields["prompt"] = record_limits.sentence(text)
    fields["last_seq"], fields["attempt"] = _count(document, "last_seq", 0), _count(document, "attempt", 1)
    token = document.get("auth_token")
    is_token = isinstance(token, str) and token.isascii() and 0 < len(token) <= _LONGEST_TOKEN
    fields["auth_token"] = token if is_token else None
    return fields


def parse_facts(document: object) -> dict[str, Any] | None:
    """Return the facts of a job from a ledger that anybody may have written; None if there are none.

    A default replaces every value of a wrong type. Facts that name a process are left out: it was one of
    another machine, or of another time.
    """
    if not isinstance(document, dict):
        return None
    facts = {key: _fitting(key, document.get(key), default) for key, default in DEFAULTS.items()}
    if facts["type"] not in rules.TYPES:
        facts["type"] = rules.ONCE
    for key in _TEXTS:
        if _is_sound(document.get(key)):
            facts[key] = document[key]
    for key in _TIMES:
        value = document.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _LAST_TIME:
            facts[key] = float(value)
    facts |= {key: True for key in _FLAGS if document.get(key) is True}
    arguments = document.get("args")
    if isinstance(arguments, list):
        facts["args"] = [argument for argument in arguments if _is_sound(argument)]
    facts["dropped"] = _count(document, "dropped", 0)
    return facts


def flaw_of(facts: dict[str, Any]) -> str | None:
    """Return what is wrong with the facts of a job that the ledger has; None if nothing is."""
    for key, default in DEFAULTS.items():
        value = facts.get(key)
        if value is not None and _fitting(key, value, default) != value:
            return _flaw(key, value)
    for key in _TIMES:
        if facts.get(key) is not None and not _is_number(facts[key]):
            return _flaw(key, facts[key])
    wrong = next((key for key in _TEXTS if facts.get(key) is not None and not _is_sound(facts[key])), None)
    return None if wrong is None else _flaw(wrong, facts[wrong])


def sound_columns(columns: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the columns of a job with a default for each value of a wrong type, and what was wrong.

    A job with an unknown status counts as parked: nothing happens to it by itself, and it can be cancelled.
    """
    defaults: dict[str, Any] = {
        **dict.fromkeys(("created_at", "updated_at", "last_event_at"), 0.0),
        "attempt": 1,
        "last_seq": 0,
        "ended_seq": None,
        "session_id": None,
        "status": rules.JobStatus.PARKED,
    }
    fits: dict[str, Callable[[object], bool]] = {
        **dict.fromkeys(("created_at", "updated_at", "last_event_at"), _is_time),
        **dict.fromkeys(("attempt", "last_seq"), _is_whole),
        "ended_seq": lambda value: value is None or _is_whole(value),
        "session_id": lambda value: value is None or isinstance(value, str),
        "status": lambda value: value in tuple(rules.JobStatus),
    }
    wrong = [key for key, check in fits.items() if not check(columns[key])]
    if not wrong:
        return columns, None
    return {**columns, **{key: defaults[key] for key in wrong}}, _flaw(wrong[0], columns[wrong[0]])


def _flaw(key: str, value: object) -> str:
    return f"its {key} cannot be {one_line(repr(value), 60)}"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_time(value: object) -> bool:
    return isinstance(value, (int, float)) and 0 <= value < _LAST_TIME


def _is_whole(value: object) -> bool:
    return type(value) is int


def _fitting(key: str, value: object, default: object) -> object:
    """Return a value of the file if it has the type that the field needs, else the default."""
    if isinstance(default, float):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return default
        return float(value) if 0 <= value < _LONGEST_SECONDS else default
    kind = _KINDS.get(key, str) if default is None else type(default)
    if type(value) is not kind or (kind is str and not _is_sound(value)):
        return default
    return [item for item in value if _is_sound(item)] if isinstance(value, list) else value


def _is_sound(text: object) -> bool:
    """Tell whether a value is a text that can be stored and can name a file."""
    if not isinstance(text, str) or "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _count(document: dict[str, Any], key: str, least: int) -> int:
    value = document.get(key)
    return value if type(value) is int and least <= value <= events.HIGHEST_GIVEN else least
