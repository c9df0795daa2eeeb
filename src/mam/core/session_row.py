"""One session as the registry stores it: its fields, their order and their defaults.

A row is a plain mapping at run time, because it goes unchanged into JSON and YAML, and because keys that
a person added must survive. The types below exist for readers and for the type checker.
"""

from __future__ import annotations

from mam.core.names import KIND_ALIASES, KNOWN_KINDS, UNKNOWN_KIND, kind_of_command, kind_of_name
from mam.core.string_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypedDict

    class Pane(TypedDict, total=False):
        """The pane of the session and the process in it."""

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
        """One conversation of the session, by the agent's id; `fork_of` is the id of the copied one."""

        id: str
        source: str
        since: str
        fork_of: str

    class Action(TypedDict):
        """The last action on the session: who, what and when."""

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


# The kind of a session that runs the command of one job, once.
EXEC = "exec"
# The name of mam's own MCP server in the settings of an agent.
MCP_SERVER = "mam"


class Status(StrEnum):
    """The status of a session. A row read from the database holds plain text, which compares equal."""

    RUNNING = "running"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    ARCHIVED = "archived"


STATUSES = tuple(Status)

# The field that was added to rows last. A row that has it has all fields.
NEWEST_FIELD = "model"

# In the order of the registry file. The own-id field of the row's kind follows `pane`.
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

# Compiled at the first use, so that the start of every command does not pay for it.
_OWN_ID = r"[a-z0-9_]+_(?:session|conversation)_id_own\Z"


_own_id_fields: dict[str, str] = {}


def own_id_field(kind: str) -> str:
    """Return the name of the field that holds the id of the session's own conversation."""
    field = _own_id_fields.get(kind)
    if field is None:
        stem = kind.lower()
        if not (stem.isascii() and stem.isalnum()):
            import re

            stem = re.sub(r"[^a-z0-9]+", "_", stem)
        field = f"{stem}_conversation_id_own" if kind == "agy" else f"{stem}_session_id_own"
        _own_id_fields[kind] = field
    return field


def is_own_id_field(key: str) -> bool:
    """Tell whether a field is the own-id field of any agent kind."""
    import re

    return bool(re.match(_OWN_ID, key))


def own_id(row: Row) -> str | None:
    """Return the id of the row's own conversation, which was observed on disk; None if there is none."""
    value = row.get(own_id_field(row.get("agent") or ""))
    return value if isinstance(value, str) and value else None


def merged(row: Row, **fields: Any) -> Row:
    """Return the row with some fields changed."""
    return {**row, **fields}  # type: ignore[typeddict-item]  # fields of a row, or a person's own keys


def current_conversation(row: Row) -> str | None:
    """Return the id of the session's current conversation, even if the conversation is not on disk yet."""
    conversations = row.get("conversations") or []
    return own_id(row) or (conversations[-1]["id"] if conversations else None)


def id_or_name(row: Row) -> str:
    """Return the id; the name of a row of the original system that has no id yet."""
    return row.get("id") or row["name"]


def has_conversation(row: Row) -> bool:
    """Tell whether the row records any conversation, be it of its own kind or not."""
    return bool(row.get("conversations")) or any(row.get(key) for key in row if is_own_id_field(key))


def has_mcp_server(row: Row) -> bool:
    """Tell whether the last launch of a session got mam's own tools. The next launch then gets them too."""
    return MCP_SERVER in ((row.get("pane") or {}).get("mcp_attachments") or [])


def launch_of(row: Row) -> str:
    """Return what distinguishes the last launch of a session from its other launches."""
    pane = row.get("pane") or {}
    return f"{pane.get('boot_id')} {pane.get('pid')} {pane.get('pid_start')}"


def is_running(row: Row) -> bool:
    """Tell whether the registry says that the session is running."""
    return row.get("status") == Status.RUNNING


def is_purged(row: Row) -> bool:
    """Tell whether a session has ended and its conversation was deleted."""
    return not is_running(row) and row.get("termination_mode") == "purge"


def with_all_fields(row: Row, session_id: str | None = None) -> Row:
    """Return the row with all fields of this version, in order; unknown keys follow unchanged.

    A row of the original system has fewer fields, and its `start_command` is one string.
    """
    fields: dict[str, Any] = {}
    agent = kind_of_row(row)
    for key, default in DEFAULTS.items():
        value = row.get(key)
        # A document must hold plain text, also where the caller gave an enum member.
        fields[key] = _fresh(default) if value is None else str(value) if isinstance(value, str) else value
        if key == "pane":
            field = own_id_field(agent)
            fields[field] = row.get(field)
    fields["agent"] = agent
    fields["id"] = fields["id"] or session_id
    fields["workspace"] = fields["workspace"] or fields["pane"].get("cwd") or ""
    if isinstance(fields["start_command"], str):
        fields["start_command"] = _split(fields["start_command"])
    if fields["last_action"] is None:
        fields["last_action"] = {"by": "unknown", "verb": "import", "at_epoch": 0}
    if row.get("resumable") is None:
        fields["resumable"] = bool(fields[own_id_field(agent)])
    fields.update((key, value) for key, value in row.items() if key not in fields)
    return fields  # type: ignore[return-value]  # built from the fields above


def kind_of_row(row: Row) -> str:
    """Return the kind of a row that may not name it: then what the row shows of its program decides.

    A row of the original system has no `agent`, and its name may be any name. An id of a conversation says
    most, then the command, then the command of the pane. A field that has no id yet says least.
    """
    named = row.get("agent") or kind_of_name(row.get("name") or "")
    if named and named != UNKNOWN_KIND:
        return KIND_ALIASES.get(named, named)
    fields = {kind: own_id_field(kind) for kind in KNOWN_KINDS}
    by_id = [kind for kind, field in fields.items() if row.get(field)]
    by_field = [kind for kind, field in fields.items() if field in row]
    commands: list[Any] = [row.get("start_command"), (row.get("pane") or {}).get("cmd")]
    by_command = [
        kind_of_command(_split(command) if isinstance(command, str) else command or [])
        for command in commands
    ]
    found = [*(by_id if len(by_id) == 1 else []), *by_command, *(by_field if len(by_field) == 1 else [])]
    return next(filter(None, found), UNKNOWN_KIND)


def with_new_fields(row: Row) -> Row:
    """Return a stored row with the fields that newer versions of mam added; most rows have them already."""
    return row if NEWEST_FIELD in row else with_all_fields(row)


def _fresh(value: object) -> object:
    return value.copy() if isinstance(value, (list, dict)) else value


def _split(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return [command]
