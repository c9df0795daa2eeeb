"""Check a row that mam did not write itself.

A registry may come from the original system, from a person, or with a cloned repository. All values that
verbs rely on are checked here, once. So a wrong value is reported with its line, and does not break a verb
or reach a command line.
"""

from __future__ import annotations

import re

from mam.core.errors import InvalidName, Usage
from mam.core.names import (
    is_environment_key,
    is_session_id,
    parse_kind,
    parse_model,
    parse_role,
    parse_row_name,
    parse_server,
)
from mam.core.safe_text import one_line
from mam.core.session_row import STATUSES, is_own_id_field
from mam.core.settings import PERMISSIONS
from mam.core.times import LAST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Check = Callable[[Any], bool]

_CONVERSATION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]{0,199}\Z")
_LONGEST_NAME = 200


def flaws(row: object) -> list[tuple[str | None, str]]:
    """Return the reasons why a parsed row is unusable, each with its field."""
    if not isinstance(row, dict):
        return [(None, "a session must be a mapping")]
    reasons: list[tuple[str | None, str]] = []
    if not _is_name(row.get("name")):
        reasons.append(("name", "'name' must be a text of printable characters"))
    if row.get("status") not in STATUSES:
        reasons.append(("status", f"'status' must be one of {', '.join(STATUSES)}"))
    for key, value in row.items():
        check, expected = _FIELDS.get(key) or (_OWN_ID if is_own_id_field(key) else _ANYTHING)
        if value is not None and not check(value):
            reasons.append((key, f"'{key}' must be {expected}"))
    return reasons


def launch_flaws(row: Any) -> list[tuple[str, str]]:
    """Return the reasons why a row cannot be started, each with its field: what reaches an argv is parsed.

    Such a row may be in the database already, so it stays readable, and other sessions are not concerned.
    """
    reasons = []
    for key, value in row.items():
        check, expected = _LAUNCHED.get(key) or (_OWN_ID if is_own_id_field(key) else _ANYTHING)
        if value is not None and not check(value):
            reasons.append((key, f"'{key}' must be {expected}, not {one_line(repr(value), 80)}"))
    return reasons


def is_conversation_id(value: object) -> bool:
    """Tell whether a value can be the id of a conversation, which becomes a file name and an argument."""
    return isinstance(value, str) and bool(_CONVERSATION.match(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Tell whether a value is a number that takes part in calculations: finite, and no longer than a time."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and -LAST <= value <= LAST


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) and "\0" not in word for word in value)


def _is_command(value: object) -> bool:
    return _is_texts(value) or (isinstance(value, str) and "\0" not in value)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME and value.isprintable()


def _parse_role(text: str) -> str:
    return parse_role(text) or ""


def _is_path(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _is_id(value: object) -> bool:
    return isinstance(value, str) and is_session_id(value)


def _is_accepted(parse: Callable[[str], str]) -> Check:
    def check(value: object) -> bool:
        try:
            return isinstance(value, str) and bool(parse(value))
        except (InvalidName, Usage):
            return False

    return check


def _is_mapping(**checks: Check) -> Check:
    """Return a check for a mapping. It checks only the named keys, and accepts null for each."""

    def check(value: object) -> bool:
        return isinstance(value, dict) and all(
            value.get(key) is None or fits(value[key]) for key, fits in checks.items()
        )

    return check


def _is_conversations(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict)
        and is_conversation_id(entry.get("id"))
        and (entry.get("fork_of") is None or is_conversation_id(entry["fork_of"]))
        for entry in value
    )


def _is_full_path(value: object) -> bool:
    return _is_path(value) and str(value).startswith("/")


def _is_startable(value: object) -> bool:
    return isinstance(value, list) and _is_texts(value) and not (value and (value[0] or "-").startswith("-"))


def _is_permissions(value: object) -> bool:
    return value in PERMISSIONS


def _is_variables(value: object) -> bool:
    return (
        isinstance(value, dict)
        and _is_environment(value)
        and all(isinstance(name, str) and is_environment_key(name) for name in value)
    )


def _is_environment(value: object) -> bool:
    return isinstance(value, dict) and all(_is_path(text) for text in value.values())


_ANYTHING: tuple[Check, str] = (lambda _value: True, "anything")
_OWN_ID: tuple[Check, str] = (is_conversation_id, "an id or null")
_TEXT: tuple[Check, str] = (_is_text, "a text")
_WHOLE: tuple[Check, str] = (_is_whole, "a whole number")
_EPOCH: tuple[Check, str] = (_is_number, "a number of seconds")
_PANE = _is_mapping(
    id=_is_text,
    pid=_is_whole,
    pid_start=_is_whole,
    boot_id=_is_text,
    server_pid=_is_whole,
    cmd=_is_text,
    version=_is_text,
    cwd=_is_path,
)
_CONVERSATIONS: tuple[Check, str] = (_is_conversations, "a list of mappings with an id")
# The fields that reach the argv or the environment of a launch.
_LAUNCHED: dict[str, tuple[Check, str]] = {
    "name": (_is_accepted(parse_row_name), "a name that tmux can have"),
    "agent": (_is_accepted(parse_kind), "an agent kind"),
    "workspace": (_is_full_path, "the full path of a directory"),
    "tmux_server": (_is_accepted(parse_server), "a tmux server's name or socket"),
    "start_command": (_is_startable, "a list of words that begins with a program"),
    "permissions": (_is_permissions, f"one of {', '.join(PERMISSIONS)}"),
    "model": (_is_accepted(parse_model), "the name of a model, which does not begin with '-'"),
    "stores": (_is_variables, "a mapping of variables"),
    "conversations": _CONVERSATIONS,
}
_FIELDS: dict[str, tuple[Check, str]] = {
    "id": (_is_id, "an id of mam's (s_ and eight hexadecimal digits)"),
    "agent": (_is_accepted(parse_kind), "an agent kind"),
    "role": (_is_accepted(_parse_role), "a short text that is not empty"),
    "workspace": (_is_path, "a directory"),
    "resumable": (_is_bool, "true or false"),
    "tmux_server": (_is_accepted(parse_server), "a tmux server's name or socket"),
    "tmux_session_id": _TEXT,
    "start_command": (_is_command, "a list of words"),
    "permissions": _TEXT,
    "pane": (_PANE, "a mapping of a pane's facts"),
    "conversations": _CONVERSATIONS,
    "stores": (_is_environment, "a mapping of texts"),
    "worktree": (_is_environment, "a mapping of texts"),
    "delegate_job_id": _TEXT,
    "parent": _TEXT,
    "last_visible_status": _TEXT,
    "last_visible_note": _TEXT,
    "exit_status": (_is_number, "a number"),
    "created_at": _TEXT,
    "created_at_epoch": _EPOCH,
    "resumed_at": _TEXT,
    "resume_count": _WHOLE,
    "resume_tier": _WHOLE,
    "stopped_at": _TEXT,
    "stopped_at_epoch": _EPOCH,
    "stop_reason": _TEXT,
    "terminated_at": _TEXT,
    "terminated_at_epoch": _EPOCH,
    "termination_mode": _TEXT,
    "last_action": (_is_mapping(by=_is_text, verb=_is_text, at_epoch=_is_number), "a mapping"),
    "version": _WHOLE,
}
