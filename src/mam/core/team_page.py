"""The markdown file of a team, for people: who is there, what may be closed, what is to be done. Pure."""

from __future__ import annotations

from mam.core.safe_text import for_screen, one_line
from mam.core.task import CLAIMED, shown
from mam.core.team import BOXES, CLOSED
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_HEAD = "<!-- Written by mam after every change; what is changed here is lost. -->"
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
_LIFECYCLE = ("Session", "Pane ID", "Role", "Status", *(name.capitalize() for name in BOXES.values()))
_NONE = "none"


def render(
    team: dict[str, Any],
    members: Sequence[dict[str, Any]],
    tasks: Sequence[dict[str, Any]],
    lines: Sequence[tuple[float, str]],
) -> str:
    """Return the whole file."""
    open_ones = [one for one in members if one["state"] != CLOSED]
    parts = [
        f"# Agent Sessions — {team['id']}",
        "",
        _HEAD,
        "",
        f"Track: {_cell(team['name'] or 'by hand')}",
        f"Master: {_cell(team['master'] or 'a person outside of tmux')}",
        f"Started: {team['started_at']}" + (f" · Ended: {team['ended_at']}" if team["ended_at"] else ""),
        "",
        "## Active Agents",
        "",
        *_table(_AGENTS, [_agent(one) for one in open_ones]),
        "",
        "## Pane Lifecycle",
        "",
        *_table(_LIFECYCLE, [_lifecycle(one) for one in members]),
        "",
        "## Tasks",
        "",
        *(line for one in tasks for line in _task(one)),
    ]
    if not tasks:
        parts += [_NONE, ""]
    parts += ["## Messages that did not arrive", ""]
    parts += [f"- {stamp(at)} {one_line(line, 500)}" for at, line in lines] or [_NONE]
    return "\n".join(parts) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return [*lines, *(f"| {' | '.join(row)} |" for row in rows)]


def _agent(one: dict[str, Any]) -> list[str]:
    facts = (
        one["pane"],
        one["session"],
        one["window"],
        one["role"],
        "busy" if one["task"] else "idle",
        one["workspace"],
        one["label"],
        one["name_source"],
        one["conversation"],
        one["spawned_at"],
    )
    return [_cell(fact) for fact in facts]


def _lifecycle(one: dict[str, Any]) -> list[str]:
    facts = [_cell(fact) for fact in (one["session"], one["pane"], one["role"], one["state"])]
    return [*facts, *("[x]" if one["boxes"][box] else "[ ]" for box in BOXES)]


def _task(one: dict[str, Any]) -> list[str]:
    """Return a task under its heading; its words stand in a quotation and make no heading of their own."""
    claimed = f" (claimed:{_cell(one['pane'] or one['claimed_by'])})" if one["status"] == CLAIMED else ""
    lines = [f"### {shown(one['seq'])} · {one['status']}{claimed} · {_cell(one['role'])}", ""]
    lines += [f"> {line}" for line in for_screen(one["text"]).splitlines()]
    if one["result"]:
        lines += ["", f"Result: {one_line(one['result'], 1000)}"]
    return [*lines, ""]


def _cell(value: object) -> str:
    text = one_line(str(value), 300) if value else "-"
    return text.replace("\\", "\\\\").replace("|", "\\|")
