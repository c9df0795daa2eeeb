"""mam team: start, end or list teams of agents with roles."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser
    from mam.surfaces.cli.style import Paint
    from mam.surfaces.cli.table import Cell, Column

    Document = dict[str, Any]

DESCRIPTION = """\
Start or end a team, or list the teams with their members and checklists.

A team is a preset (mam team list names them) or a YAML file with roles, agent kinds, prompts,
colours and a layout. This pane is its master's; outside of tmux the team gets its own tmux
session. If one role does not start, mam ends the others again. down ends each agent with its own
exit command; unfinished tasks become pending again."""
EXAMPLES = """
  mam team up dev-qa --task "add a logout button"
  mam team up ./my-team.yaml --agent codex --permissions ask
  mam team down
  mam team list --all"""
TAKES_REST = True


def add_options(parser: Parser) -> None:
    """Add the subcommands."""
    from mam.surfaces.cli.parser import add_subcommands

    add_subcommands(
        parser,
        {
            "up": ("start every role of a preset or a file", _of_up),
            "down": ("end every member of a team", _of_down),
            "list": ("list the teams and the presets", _of_list),
        },
        EXAMPLES,
    )


def _of_up(parser: Parser) -> None:
    from mam.surfaces.cli.verbs.spawn import add_start

    parser.add_argument("source", metavar="PRESET|FILE", help="name of a preset, or a YAML file")
    parser.add_argument("--task", metavar="TEXT", help="the first task, for the first role")
    add_start(parser)


def _of_down(parser: Parser) -> None:
    parser.add_argument("team", metavar="TEAM", nargs="?", help="the team (default: that of this window)")
    parser.add_argument("--force", action="store_true", help="kill agents that do not exit by themselves")


def _of_list(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="also list ended teams")


def run(call: Invocation) -> int:
    """Run the subcommand."""
    if call.options.rest and call.options.subcommand != "up":
        raise Usage("only mam team up takes arguments after --", hint="leave out -- and what follows it")
    return _SUBCOMMANDS[call.options.subcommand](call)


def _up(call: Invocation) -> int:
    from mam.core.message_rules import EXIT_CODES
    from mam.surfaces.cli.verbs.spawn import start_options

    options = call.options
    document = call.fleet.teams.up(options.source, work=options.task, **start_options(options))
    call.say(document, *([] if call.as_json else _show_up(document)))
    return max(
        [EXIT_CODES[member["receipt"]["state"]] for member in document["members"] if member["receipt"]],
        default=0,
    )


def _down(call: Invocation) -> int:
    from mam.surfaces.cli.render_sessions import clean

    document = call.fleet.teams.down(call.options.team, force=call.options.force)
    if not document["changed"]:
        return call.say(document, f"nothing to do: {clean(document['team']['id'])} is down already")
    lines = [
        f"down: {clean(document['team']['id'])} ({', '.join(map(clean, document['closed'])) or 'no members'})"
    ]
    if document["unfinished"]:
        lines.append(f"unfinished, and pending again: {', '.join(map(clean, document['unfinished']))}")
    lines += [
        f"{clean(failure['session'])} is still running: {clean(failure['error'])}"
        for failure in document["failed"]
    ]
    call.say(document, *lines)
    return 3 if document["failed"] else 0


def _list(call: Invocation) -> int:
    document = call.fleet.teams.list(ended=call.options.all)
    return call.say(document, *([] if call.as_json else _show_list(document, call.paint())))


_SUBCOMMANDS: dict[str, Callable[[Invocation], int]] = {"up": _up, "down": _down, "list": _list}


def _show_up(document: Document) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean, line
    from mam.surfaces.cli.verbs.spawn import page_line

    lines = [f"up: {clean(document['team']['id'])}"]
    for member in document["members"]:
        pane = clean(member["session"]["pane"].get("id"))
        task = f", with {clean(member['task']['id'])}" if member["task"] else ""
        permissions = f", permissions {clean(member['permissions'])}"
        state = f", first message {member['receipt']['state']}" if member["receipt"] else ""
        dialog = f": {clean(member['dialog'])}" if member["dialog"] else ""
        lines.append(f"  {line(member['session'])} in pane {pane}{task}{permissions}{state}{dialog}")
    lines.append(
        "no member asks for permissions (--permissions, or team_permissions in the settings, changes it)"
        if document["permissions"] == ["skip"]
        else "--permissions, or team_permissions in the settings, changes the permissions"
    )
    return [*lines, page_line(document)]


def _show_list(document: Document, paint: Paint) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import render

    lines: list[str] = []
    for team in document["teams"]:
        ended = f", down since {team['ended_at']}" if team["ended_at"] else ""
        lines.append(f"{paint(clean(team['id']), 'bold')}  master {clean(team['master'])}{ended}")
        lines += render(_columns(), [_cells(member) for member in team["members"]], paint)
        lines.append("")
    if not lines:
        lines = ["no team is up", ""]
    return [*lines, f"presets: {', '.join(map(clean, document['presets']))}"]


def _columns() -> tuple[Column, ...]:
    from mam.surfaces.cli.table import Column

    return (
        Column("MEMBER"),
        Column("AGENT", least=6, rank=2, worth=3),
        Column("PANE", worth=2),
        Column("STATE", worth=5),
        Column("TASK", may_go=True, worth=4),
        Column("CHECKLIST", least=12, rank=1, from_end=True, worth=1),
    )


def _cells(member: Document) -> list[Cell]:
    from mam.surfaces.cli.render_sessions import clean

    checked = ", ".join(item for item, is_checked in member["boxes"].items() if is_checked)
    facts = ("agent", "pane", "state", "task")
    return [
        (clean(member["session"]), "bold"),
        *((clean(member[fact]), None) for fact in facts),
        (clean(checked), None),
    ]
