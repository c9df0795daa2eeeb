"""The team page: the Markdown file that shows people a team's members, checklists and tasks. Pure."""

from __future__ import annotations

from mam.core.safe_text import for_screen, one_line
from mam.core.session_row import Status
from mam.core.task_format import CLAIMED, shown
from mam.core.team_plan import CHECKLIST, CLOSED
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_HEAD = "<!-- mam writes this file after every change; edits are lost. -->"
_AGENTS = (
    "Pane ID",
    "Session",
    "Window",
    "Role",
    "Status",
    "Project Root",
    "Pane Name",
    "Name Source",
    "Session ID",
    "Spawned At",
)
_LIFECYCLE = ("Session", "Pane ID", "Role", "Status", *(name.capitalize() for name in CHECKLIST.values()))
_NONE = "none"


def beginning(team_id: str) -> str:
    """Return the first lines of a team's page, by which mam knows its own page."""
    return f"# Agent Sessions — {team_id}\n\n{_HEAD}\n"


def render(
    team: dict[str, Any],
    members: Sequence[dict[str, Any]],
    tasks: Sequence[dict[str, Any]],
    lines: Sequence[tuple[float, str]],
) -> str:
    """Return the text of the file."""
    active = [member for member in members if member["state"] != CLOSED]
    parts = [
        beginning(team["id"]),
        f"Track: {_cell(team['name'] or 'by hand')}",
        f"Master: {_cell(team['master'] or 'a person outside of tmux')}",
        f"Started: {team['started_at']}" + (f" · Ended: {team['ended_at']}" if team["ended_at"] else ""),
        "",
        "## Active Agents",
        "",
        *_table(_AGENTS, [_agent(member) for member in active]),
        "",
        "## Pane Lifecycle",
        "",
        *_table(_LIFECYCLE, [_lifecycle(member) for member in members]),
        "",
        "## Tasks",
        "",
        *(line for task in tasks for line in _task(task)),
    ]
    if not tasks:
        parts += [_NONE, ""]
    parts += ["## Messages that did not arrive", ""]
    parts += [f"- {stamp(at)} {one_line(line, 500)}" for at, line in lines] or [_NONE]
    return "\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


def _agent(member: dict[str, Any]) -> list[str]:
    facts = (
        member["pane"],
        member["session"],
        member["window"],
        member["role"],
        _ended(member) or ("busy" if member["task"] else "idle"),
        member["workspace"],
        member["label"],
        member["name_source"],
        member["conversation"],
        member["spawned_at"],
    )
    return [_cell(fact) for fact in facts]


def _ended(member: dict[str, Any]) -> str | None:
    """Return the status of a member whose session does not run, or None."""
    return None if member["status"] == Status.RUNNING else member["status"]


def _lifecycle(member: dict[str, Any]) -> list[str]:
    state = member["state"] if member["state"] == CLOSED else _ended(member) or member["state"]
    facts = [_cell(fact) for fact in (member["session"], member["pane"], member["role"], state)]
    return [*facts, *("[x]" if member["boxes"][item] else "[ ]" for item in CHECKLIST)]


def _task(task: dict[str, Any]) -> list[str]:
    """Return a task under its heading; its text is quoted, so that it cannot add headings."""
    claimed = f" (claimed:{_cell(task['pane'] or task['claimed_by'])})" if task["status"] == CLAIMED else ""
    lines = [f"### {shown(task['seq'])} · {task['status']}{claimed} · {_cell(task['role'])}", ""]
    lines += [f"> {line}" for line in for_screen(task["text"]).splitlines()]
    if task["result"]:
        lines += ["", f"Result: {one_line(task['result'], 1000)}"]
    return [*lines, ""]


def _cell(value: object) -> str:
    text = one_line(str(value), 300) if value else "-"
    return text.replace("\\", "\\\\").replace("|", "\\|")
