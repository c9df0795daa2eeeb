"""mam register: an agent that was started by hand joins a team."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Register the agent of this pane, which was started by hand, under a role: it gets a row, a place in
the team of this window, and the oldest task that waits for its role. Its program, its name and
its tmux session stay as they are. As master it gets a row only: the agents that it spawns report
to it."""
EXAMPLES = """
  mam register --role qa
  mam register --role master --agent claude"""


def add_options(parser: Parser) -> None:
    """As what."""
    add = parser.add_argument
    add("--role", metavar="ROLE", required=True, help="what it is for: dev, qa, master, …")
    add("--agent", metavar="KIND", help="what runs here, where mam does not see it: claude, codex, …")
    add("--session", metavar="NAME", help="name of the new session; without one it is called as its role")
    add("--team", metavar="TEAM", help="which team, where it is not that of this window")


def run(call: Invocation) -> int:
    """Register it, and print its first task."""
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean, line

    options = call.options
    done = call.fleet.teams.register(
        options.role, agent=options.agent, name=options.session, team=options.team
    )
    lines = [f"registered: {line(done['session'])}"]
    if done["team"]:
        lines[0] += f", team {clean(done['team'])}"
    if done["task"]:
        lines += [
            f"your task {clean(done['task']['id'])}:",
            "",
            *for_screen(done["task"]["text"]).splitlines(),
        ]
    return call.say(done, *lines)
