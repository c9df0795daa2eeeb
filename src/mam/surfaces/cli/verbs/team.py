"""mam team: several agents with roles in one window."""

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
Bring a team up and down, or list the teams with their members and boxes.

A team is a preset (mam team list names them) or a YAML file with roles, kinds, prompts, colours
and a layout. This pane is its master; outside of tmux it gets a tmux session of its own. Where one
role does not start, the others are ended again. down ends each agent with its own exit word; what
was not finished waits again for its role."""
EXAMPLES = """
  mam team up dev-qa --task "add a logout button"
  mam team up ./my-team.yaml --agent codex --permissions ask
  mam team down
  mam team list --all"""
TAKES_REST = True


def add_options(parser: Parser) -> None:
    """Which word, and its options."""
    from mam.surfaces.cli.parser import add_words

    add_words(
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

    parser.add_argument("what", metavar="PRESET|FILE", help="name of a preset, or a YAML file")
    parser.add_argument("--task", metavar="TEXT", help="the first task, for the first role")
    add_start(parser)


def _of_down(parser: Parser) -> None:
    parser.add_argument("team", metavar="TEAM", nargs="?", help="which; without it, that of this window")
    parser.add_argument("--force", action="store_true", help="kill at once what does not leave by itself")


def _of_list(parser: Parser) -> None:
    parser.add_argument("--all", action="store_true", help="those that are down, too")


def run(call: Invocation) -> int:
    """Do what the word says."""
    if call.options.rest and call.options.word != "up":
        raise Usage("words after -- are for agents that are started")
    return _WORDS[call.options.word](call)


def _up(call: Invocation) -> int:
    from mam.core.message import EXIT_CODES
    from mam.surfaces.cli.verbs.spawn import start

    options = call.options
    done = call.fleet.teams.up(options.what, work=options.task, **start(options))
    call.say(done, *([] if call.as_json else _show_up(done)))
    return max([EXIT_CODES[one["receipt"]["state"]] for one in done["members"] if one["receipt"]], default=0)


def _down(call: Invocation) -> int:
    from mam.surfaces.cli.render_sessions import clean

    done = call.fleet.teams.down(call.options.team, force=call.options.force)
    lines = [
        f"down: {clean(done['team']['id'])} ({', '.join(map(clean, done['closed'])) or 'nobody was there'})"
    ]
    if done["unfinished"]:
        lines.append(f"not finished, and waiting again: {', '.join(map(clean, done['unfinished']))}")
    lines += [f"{clean(one['session'])} is still there: {clean(one['error'])}" for one in done["failed"]]
    call.say(done, *lines)
    return 3 if done["failed"] else 0


def _list(call: Invocation) -> int:
    done = call.fleet.teams.list(ended=call.options.all)
    return call.say(done, *([] if call.as_json else _show_list(done, call.paint())))


_WORDS: dict[str, Callable[[Invocation], int]] = {"up": _up, "down": _down, "list": _list}


def _show_up(done: Document) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean, line
    from mam.surfaces.cli.verbs.spawn import permissions_line

    lines = [f"up: {clean(done['team']['id'])}"]
    for one in done["members"]:
        pane = clean(one["session"]["pane"].get("id"))
        at = f", at {clean(one['task']['id'])}" if one["task"] else ""
        state = f", first words {one['receipt']['state']}" if one["receipt"] else ""
        dialog = f": {clean(one['dialog'])}" if one["dialog"] else ""
        lines.append(f"  {line(one['session'])} in pane {pane}{at}{state}{dialog}")
    lines.append(permissions_line("each", done["permissions"]))
    return [*lines, f"session file: {clean(done['session_file'], 500)}"]


def _show_list(done: Document, paint: Paint) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.table import render

    lines: list[str] = []
    for team in done["teams"]:
        ended = f", down since {team['ended_at']}" if team["ended_at"] else ""
        lines.append(f"{paint(clean(team['id']), 'bold')}  master {clean(team['master'])}{ended}")
        lines += render(_columns(), [_cells(one) for one in team["members"]], paint)
        lines.append("")
    if not lines:
        lines = ["no team is up", ""]
    return [*lines, f"presets: {', '.join(map(clean, done['presets']))}"]


def _columns() -> tuple[Column, ...]:
    from mam.surfaces.cli.table import Column

    return (
        Column("MEMBER", least=8, rank=3),
        Column("AGENT", least=6, rank=2),
        Column("PANE"),
        Column("STATE"),
        Column("TASK", may_go=True),
        Column("BOXES", least=12, rank=1, from_end=True),
    )


def _cells(member: Document) -> list[Cell]:
    from mam.surfaces.cli.render_sessions import clean

    ticked = ", ".join(box for box, is_ticked in member["boxes"].items() if is_ticked)
    facts = ("agent", "pane", "state", "task")
    return [
        (clean(member["session"]), "bold"),
        *((clean(member[fact]), None) for fact in facts),
        (clean(ticked), None),
    ]
