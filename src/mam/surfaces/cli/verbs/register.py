"""mam register: add an agent that was started by hand to a team."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Register the agent of this pane, which was started by hand, with a role. It gets a row, joins the
team of this window, and claims the oldest pending task of its role. Its program, its name and its
tmux session do not change. A master only gets a row: the agents that it spawns report to it."""
EXAMPLES = """
  mam register --role qa
  mam register --role master --agent claude"""


def add_options(parser: Parser) -> None:
    """Add the options: the role, the agent kind, the name and the team."""
    add = parser.add_argument
    add("--role", metavar="ROLE", required=True, help="role of the agent: dev, qa, master, …")
    add("--agent", metavar="KIND", help="agent kind, if mam cannot detect it: claude, codex, …")
    add("--session", metavar="NAME", help="name of the new session (default: its role)")
    add("--team", metavar="TEAM", help="the team (default: that of this window)")


def run(call: Invocation) -> int:
    """Register the agent, and print its first task."""
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean, line
    from mam.surfaces.cli.verbs.spawn import page_line

    options = call.options
    document = call.fleet.teams.register(
        options.role, agent=options.agent, name=options.session, team=options.team
    )
    lines = [f"registered: {line(document['session'])}"]
    if document["team"]:
        lines[0] += f", team {clean(document['team'])}"
        lines.append(page_line(document))
    if document["task"]:
        lines += [
            f"your task {clean(document['task']['id'])}:",
            "",
            *for_screen(document["task"]["text"]).splitlines(),
        ]
    return call.say(document, *lines)
