"""One session as the registry keeps it: its fields, their order, and what an older row gains.

A row is a plain mapping at run time, because it goes unchanged into JSON and YAML and because
keys that a person added must survive; the types below exist for the reader and the checker.
"""

from __future__ import annotations

import re
from enum import StrEnum

from mam.core.names import kind_of_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    class Pane(TypedDict, total=False):
        """Where the session runs, and which process it is."""

        id: str
        pid: int
        pid_start: int
        boot_id: str
        server_pid: int
        cmd: str
        version: str
        cwd: str
        mcp_attachments: list[Any]

    class Conversation(TypedDict, total=False):
        """One dialogue that the session had, by the agent's own id; a fork says of which it is a copy."""

        id: str
        source: str
        since: str
        fork_of: str

    class Action(TypedDict):
        """Who last did what to the session."""

        by: str
        verb: str
        at_epoch: int

    class Row(TypedDict, total=False):
        """One session."""

        id: str
        name: str
        agent: str
        role: str | None
        workspace: str
        status: Status
        resumable: bool
        tmux_server: str
        tmux_session_id: str | None
        start_command: list[str]
        permissions: str
        model: str | None
        pane: Pane
        conversations: list[Conversation]
        stores: dict[str, str]
        worktree: dict[str, str] | None
        delegate_job_id: str | None
        parent: str | None
        last_visible_status: str | None
        last_visible_note: str | None
        exit_status: int | None
        created_at: str
        created_at_epoch: int
        resumed_at: str | None
        resume_count: int
        resume_tier: int | None
        stopped_at: str | None
        stopped_at_epoch: int | None
        stop_reason: str | None
        terminated_at: str | None
        terminated_at_epoch: int | None
        termination_mode: str | None
        last_action: Action
        version: int

else:
    Row = Pane = Conversation = Action = dict


class Status(StrEnum):
    """What the registry says of a session. A row that was read has the plain text, which is equal."""

    RUNNING = "running"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    ARCHIVED = "archived"


STATUSES = tuple(Status)

# The field that was added last: a row that has it has them all.
NEWEST_FIELD = "model"

# In the order of the file; the own-id field of the row's kind stands after `pane`.
DEFAULTS: dict[str, object] = {
    "id": None,
    "name": None,
    "agent": None,
    "role": None,
    "workspace": None,
    "status": None,
    "resumable": False,
    "tmux_server": "default",
    "tmux_session_id": None,
    "start_command": [],
    "permissions": "default",
    "model": None,
    "pane": {},
    "conversations": [],
    "stores": {},
    "worktree": None,
    "delegate_job_id": None,
    "parent": None,
    "last_visible_status": None,
    "last_visible_note": None,
    "exit_status": None,
    "created_at": None,
    "created_at_epoch": None,
    "resumed_at": None,
    "resume_count": 0,
    "resume_tier": None,
    "stopped_at": None,
    "stopped_at_epoch": None,
    "stop_reason": None,
    "terminated_at": None,
    "terminated_at_epoch": None,
    "termination_mode": None,
    "last_action": None,
    "version": 0,
}

_OWN_ID = re.compile(r"[a-z0-9_]+_(?:session|conversation)_id_own\Z")


_own_id_fields: dict[str, str] = {}


def own_id_field(kind: str) -> str:
    """Return the field that holds the id of the session's own conversation."""
    field = _own_id_fields.get(kind)
    if field is None:
        stem = re.sub(r"[^a-z0-9]+", "_", kind.lower())
        field = f"{stem}_conversation_id_own" if kind == "agy" else f"{stem}_session_id_own"
        _own_id_fields[kind] = field
    return field


def is_own_id_field(key: str) -> bool:
    """Tell whether a field holds the id of an own conversation, of whatever kind."""
    return bool(_OWN_ID.match(key))


def own_id(row: Row) -> str | None:
    """Return the id of the row's own conversation that was seen on disk, if any."""
    value = row.get(own_id_field(row.get("agent") or ""))
    return value if isinstance(value, str) and value else None


def merged(row: Row, **fields: Any) -> Row:
    """Return the row with some fields changed."""
    return {**row, **fields}  # type: ignore[typeddict-item]  # fields of a row, or a person's own keys


def current_conversation(row: Row) -> str | None:
    """Return the id of the conversation that the session has now: own, or chosen and not yet on disk."""
    conversations = row.get("conversations") or []
    return own_id(row) or (conversations[-1]["id"] if conversations else None)


def is_running(row: Row) -> bool:
    """Tell whether the registry holds the session for running."""
    return row.get("status") == Status.RUNNING


def settled(row: Row, session_id: str | None = None) -> Row:
    """Return the row with every field of today, in order; unknown keys follow as they were.

    A row of the original system has fewer fields and `start_command` as one string.
    """
    known: dict[str, Any] = {}
    agent = row.get("agent") or kind_of_name(row.get("name") or "") or "unknown"
    for key, default in DEFAULTS.items():
        value = row.get(key)
        # Plain text also where an enum came in: documents leave this program.
        known[key] = _fresh(default) if value is None else str(value) if isinstance(value, str) else value
        if key == "pane":
            field = own_id_field(agent)
            known[field] = row.get(field)
    known["agent"] = agent
    known["id"] = known["id"] or session_id
    known["workspace"] = known["workspace"] or known["pane"].get("cwd") or ""
    if isinstance(known["start_command"], str):
        known["start_command"] = _words(known["start_command"])
    if known["last_action"] is None:
        known["last_action"] = {"by": "unknown", "verb": "import", "at_epoch": 0}
    if row.get("resumable") is None:
        known["resumable"] = bool(known[own_id_field(agent)])
    known.update((key, value) for key, value in row.items() if key not in known)
    return known  # type: ignore[return-value]  # built from the fields above


def whole(row: Row) -> Row:
    """Return a row that we wrote, with what fields we have learned since; most of the time it is whole."""
    return row if NEWEST_FIELD in row else settled(row)


def _fresh(value: object) -> object:
    return value.copy() if isinstance(value, (list, dict)) else value


def _words(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return [command]
