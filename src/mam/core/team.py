"""A team: sessions with roles in one window. What its files may say, colours, boxes and words. Pure."""

from __future__ import annotations

from mam.core import task
from mam.core.errors import InvalidSettings, MamError
from mam.core.names import parse_kind, parse_model, slug
from mam.core.safe_text import for_screen, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# A member is started, works, is done with everything, and its pane is gone.
SPAWNING, ACTIVE, READY, CLOSED = "spawning", "active", "ready-to-close", "closed"
AUTO, MANUAL = "auto", "manual"
LAYOUTS = {"left": "main-vertical", "top": "main-horizontal"}
MASTER = "master"
# The boxes that are ticked before a pane is closed.
BOXES = {
    "reported": "report received",
    "done": "task done",
    "saved": "session id saved",
    "ready": "ready to close",
}
MOST_MEMBERS = 12
# In a pane with fewer lines Claude Code 2.1 cuts its input box, and nothing can be typed into it safely.
LEAST_LINES, LEAST_COLUMNS = 8, 30
_LONGEST_PROMPT = 16 * 1024
# What /color takes, and the colour of the pane's border.
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
_OTHERS = "pink"


class RolePlan:
    """One member as a team's file describes it."""

    __slots__ = ("agent", "colour", "model", "permissions", "prompt", "role")

    def __init__(self, role: str, **facts: str | None) -> None:
        """Take what the file says; what it does not say is None."""
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
    """Return the colour that a role has."""
    word = slug(role)
    return next((colour for colour, roles in _ROLE_COLOURS.items() if word in roles), _OTHERS)


def team_id(day: str, words: str, random: str) -> str:
    """Return the id of a team: the day, two to four words, four hex digits."""
    parts = [part for part in slug(words).split("-") if part][:4]
    return "-".join([day, *(parts or ["team"]), random])[:80]


def agent_name(role: str) -> str:
    """Return the name that an agent is given with /rename."""
    return f"{slug(role) or 'some'}-agent"


def parse(document: Any, path: str, default_name: str) -> TeamPlan:
    """Return the team that a file describes; InvalidSettings names what it may not say."""
    if not isinstance(document, dict):
        raise InvalidSettings(f"{path}: a team is a mapping with 'roles'")
    _only(document, ("name", "about", "layout", "roles"), path)
    layout = document.get("layout", LAYOUTS["left"])
    if layout not in LAYOUTS.values():
        raise InvalidSettings(f"{path}: 'layout' is one of {', '.join(LAYOUTS.values())}")
    found = document.get("roles")
    if not isinstance(found, list) or not 0 < len(found) <= MOST_MEMBERS:
        raise InvalidSettings(f"{path}: 'roles' is a list of 1 to {MOST_MEMBERS}")
    name = slug(_text(document, "name", path) or default_name) or "team"
    about = one_line(_text(document, "about", path) or "", 200)
    return TeamPlan(name, about, layout, [_role(one, path) for one in found])


def _role(entry: Any, path: str) -> RolePlan:
    if isinstance(entry, str):
        entry = {"role": entry}
    if not isinstance(entry, dict):
        raise InvalidSettings(f"{path}: a role is a word, or a mapping with 'role'")
    _only(entry, RolePlan.__slots__, path)
    facts = {key: _text(entry, key, path) for key in RolePlan.__slots__}
    try:
        role = task.parse_role(facts.pop("role"))
        if facts["agent"]:
            facts["agent"] = parse_kind(facts["agent"])
        if facts["model"] is not None:
            parse_model(facts["model"])
    except MamError as error:
        raise InvalidSettings(f"{path}: {error.message}") from None
    if facts["colour"] and facts["colour"] not in COLOURS:
        raise InvalidSettings(f"{path}: 'colour' of {role} is one of {', '.join(COLOURS)}")
    if facts["permissions"] not in (None, "ask"):
        # The file may come with a repository of somebody else: it can ask for less, never for more.
        raise InvalidSettings(
            f"{path}: 'permissions' of {role} can only be ask", hint="say more on the command line"
        )
    if facts["prompt"] is not None:
        prompt = facts["prompt"] = for_screen(facts["prompt"]).strip()
        if len(prompt.encode()) > _LONGEST_PROMPT:
            raise InvalidSettings(f"{path}: the prompt of {role} is longer than 16 KB")
    return RolePlan(role, **facts)


def _only(found: Mapping[str, Any], known: tuple[str, ...], path: str) -> None:
    for key in found:
        if key not in known:
            raise InvalidSettings(
                f"{path}: there is no '{one_line(str(key), 40)}'", hint=f"there are {', '.join(known)}"
            )


def _text(found: Mapping[str, Any], key: str, path: str) -> str | None:
    value = found.get(key)
    if value is None or isinstance(value, str):
        return value
    raise InvalidSettings(f"{path}: '{key}' must be a text")


def first_words(
    *, role: str, team: str, spawner: str | None, work: str | None, prompt: str | None, command: str = "mam"
) -> str:
    """Return what a new member is told: who it is, who started it, what to do, and how to report."""
    who = f"session {spawner}" if spawner else "a person"
    lines = [f"You are the {role} agent of the team {team}. You were started by {who}."]
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
    """Return a task as an agent is told of it."""
    return f"{task.shown(number)}: {text}"


def report_line(what: str, result: str, conversation: str | None) -> str:
    """Return the report of a task that is done, as the spawner reads it."""
    return f"STEP COMPLETE: {what} | result: {result} | session: {conversation or '-'}"
