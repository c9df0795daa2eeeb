"""A team: its file, its colours, its checklist, and the texts that its members get. Pure."""

from __future__ import annotations

import re

from mam.core import task_format
from mam.core.errors import InvalidName, InvalidSettings, MamError
from mam.core.names import parse_kind, parse_model, slug
from mam.core.safe_text import for_screen, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# States of a member: it starts, it works, its checklist is complete, its pane is closed.
SPAWNING, ACTIVE, READY, CLOSED = "spawning", "active", "ready-to-close", "closed"
AUTO, MANUAL = "auto", "manual"
LAYOUTS = {"left": "main-vertical", "top": "main-horizontal"}
MASTER = "master"
_SESSION = " | session: "
# What a member must have done before it may be closed.
CHECKLIST = {
    "reported": "report received",
    "done": "task done",
    "saved": "session id saved",
    "ready": "ready to close",
}
MOST_MEMBERS = 12
# In a pane with fewer lines Claude Code 2.1 cuts off its input box, and mam cannot type safely.
LEAST_LINES, LEAST_COLUMNS = 8, 30
_LONGEST_PROMPT = 16 * 1024
# The variable that names a session of BMAD, and what mam takes as its value: also a name of a tmux session.
SESSION_VARIABLE = "BMAD_SESSION_ID"
_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
# Argument of the agent's /color command -> colour of the pane's border.
COLOURS = {
    "blue": "#3d6095",
    "green": "#4a6e38",
    "red": "#783a3c",
    "purple": "#5c3c78",
    "orange": "#784828",
    "cyan": "#2a6e6e",
    "yellow": "#6e6e2a",
    "pink": "#784848",
}
_ROLE_COLOURS = {
    "blue": (MASTER, "coordinator"),
    "green": ("dev", "developer"),
    "red": ("qa", "review", "reviewer", "security", "tester"),
    "purple": ("architect", "pm"),
    "orange": ("analyst", "research", "researcher"),
    "cyan": ("sm", "ux"),
    "yellow": ("tech-writer", "writer"),
}
_DEFAULT_COLOUR = "pink"


class RolePlan:
    """One member as a team's file describes it."""

    __slots__ = ("agent", "colour", "model", "permissions", "prompt", "role")

    def __init__(self, role: str, **facts: str | None) -> None:
        """Take the values of the file; a missing value is None."""
        self.role = role
        self.agent: str | None = facts.get("agent")
        self.colour: str | None = facts.get("colour")
        self.model: str | None = facts.get("model")
        self.permissions: str | None = facts.get("permissions")
        self.prompt: str | None = facts.get("prompt")


class TeamPlan:
    """A team as its file describes it."""

    __slots__ = ("about", "layout", "name", "roles")

    def __init__(self, name: str, about: str, layout: str, roles: list[RolePlan]) -> None:
        self.name = name
        self.about = about
        self.layout = layout
        self.roles = roles


def colour_of(role: str) -> str:
    """Return the colour of a role."""
    name = slug(role)
    return next((colour for colour, roles in _ROLE_COLOURS.items() if name in roles), _DEFAULT_COLOUR)


def team_id(day: str, title: str, random: str) -> str:
    """Return the id of a team: the day, two to four words, four hex digits."""
    parts = [part for part in slug(title).split("-") if part][:4]
    return "-".join([day, *(parts or ["team"]), random])[:80]


def is_session_id(text: str) -> bool:
    """Tell whether a text is one part of a path, and short: the id of a team that somebody chose."""
    return _SESSION_ID.fullmatch(text) is not None


def session_id(environ: Mapping[str, str]) -> str | None:
    """Return the id of the session that the environment names, or raise InvalidName."""
    text = environ.get(SESSION_VARIABLE)
    if not text:
        return None
    if not is_session_id(text):
        raise InvalidName(
            f"{SESSION_VARIABLE} is not the id of a session: {one_line(text, 40)!r}",
            hint=f"use at most 80 letters, digits, - and _; or unset {SESSION_VARIABLE}",
        )
    return text


def agent_name(role: str) -> str:
    """Return the name that mam gives an agent with the agent's /rename command."""
    return f"{slug(role) or 'some'}-agent"


def parse(document: Any, path: str, default_name: str) -> TeamPlan:
    """Return the team that a file describes, or raise InvalidSettings with the wrong key."""
    if not isinstance(document, dict):
        raise InvalidSettings(f"{path}: a team is a mapping with 'roles'")
    _only(document, ("name", "about", "layout", "roles"), path)
    layout = document.get("layout", LAYOUTS["left"])
    if layout not in LAYOUTS.values():
        raise InvalidSettings(f"{path}: 'layout' is one of {', '.join(LAYOUTS.values())}")
    roles = document.get("roles")
    if not isinstance(roles, list) or not 0 < len(roles) <= MOST_MEMBERS:
        raise InvalidSettings(f"{path}: 'roles' is a list of 1 to {MOST_MEMBERS}")
    name = slug(_text(document, "name", path) or default_name) or "team"
    about = one_line(_text(document, "about", path) or "", 200)
    return TeamPlan(name, about, layout, [_role(entry, path) for entry in roles])


def _role(entry: Any, path: str) -> RolePlan:
    if isinstance(entry, str):
        entry = {"role": entry}
    if not isinstance(entry, dict):
        raise InvalidSettings(f"{path}: a role is a word, or a mapping with 'role'")
    _only(entry, RolePlan.__slots__, path)
    facts = {key: _text(entry, key, path) for key in RolePlan.__slots__}
    try:
        role = task_format.parse_role(facts.pop("role"))
        if facts["agent"]:
            facts["agent"] = parse_kind(facts["agent"])
        if facts["model"] is not None:
            parse_model(facts["model"])
    except MamError as error:
        raise InvalidSettings(f"{path}: {error.message}") from None
    if facts["colour"] and facts["colour"] not in COLOURS:
        raise InvalidSettings(f"{path}: 'colour' of {role} is one of {', '.join(COLOURS)}")
    if facts["permissions"] not in (None, "ask"):
        # The file may come with a foreign repository: it can lower the permissions, never raise them.
        raise InvalidSettings(
            f"{path}: 'permissions' of {role} can only be ask",
            hint="give more permissions on the command line",
        )
    if facts["prompt"] is not None:
        prompt = facts["prompt"] = for_screen(facts["prompt"]).strip()
        if len(prompt.encode()) > _LONGEST_PROMPT:
            raise InvalidSettings(f"{path}: the prompt of {role} is longer than 16 KB")
    return RolePlan(role, **facts)


def _only(mapping: Mapping[str, Any], keys: tuple[str, ...], path: str) -> None:
    for key in mapping:
        if key not in keys:
            raise InvalidSettings(
                f"{path}: there is no key '{one_line(str(key), 40)}'", hint=f"the keys are {', '.join(keys)}"
            )


def _text(mapping: Mapping[str, Any], key: str, path: str) -> str | None:
    value = mapping.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InvalidSettings(f"{path}: '{key}' must be a text")


def first_message(
    *, role: str, team: str, spawner: str | None, work: str | None, prompt: str | None, command: str = "mam"
) -> str:
    """Return the first message to a new member: its role, who started it, its task, and how to report."""
    starter = f"session {spawner}" if spawner else "a person"
    lines = [f"You are the {role} agent of the team {team}. You were started by {starter}."]
    if prompt:
        lines += ["", prompt]
    if work:
        lines += ["", work]
    else:
        lines += ["", "You have no task yet: wait until somebody writes to you."]
    lines += [
        "",
        f"When a task is done, run in a shell: {command} report --result 'what came of it, in one line'",
        "It tells who started you, and prints your next task if there is one.",
        "Do not leave and do not close panes: whoever started you does that.",
    ]
    return "\n".join(lines)


def work_line(number: int, text: str) -> str:
    """Return a task as the agent gets it."""
    return f"{task_format.shown(number)}: {text}"


def report_line(task_name: str, result: str, conversation: str | None) -> str:
    """Return the report of a finished task, as the spawner gets it."""
    return f"STEP COMPLETE: {task_name} | result: {result}{_SESSION}{conversation or '-'}"


def is_same_report(text: str, other: str) -> bool:
    """Tell whether two report lines report the same result; the conversation may have got its id between."""
    return text.rpartition(_SESSION)[0] == other.rpartition(_SESSION)[0]
