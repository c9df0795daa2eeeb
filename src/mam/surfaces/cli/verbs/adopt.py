"""mam adopt: register an agent that already runs in tmux."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Register an agent that somebody started in tmux by hand. mam does not touch the program; it renames
the tmux session to the name of the new session."""
EXAMPLES = """
  mam adopt work --agent claude --role developer
  mam adopt work --agent codex --session api --pane %7 --tmux-server default"""


def add_options(parser: Parser) -> None:
    """Add the options: the tmux session, and the new session."""
    add = parser.add_argument
    add("tmux_session", metavar="TMUX_SESSION", help="exact name of the tmux session")
    add("--agent", metavar="KIND", required=True, help="agent kind that runs in it: claude, codex, …")
    add("--session", metavar="NAME", help="name of the new session (default: the name of the tmux session)")
    add("--role", metavar="ROLE", help="role of the session; it never changes once set")
    add("--pane", metavar="%ID", help="the pane, if there are several")
    add(
        "--tmux-server",
        metavar="SERVER",
        help="tmux -L name or socket path (default: TMUX_SERVER_NAME, or default)",
    )


def run(call: Invocation) -> int:
    """Adopt the agent, and print its session."""
    from mam.core.errors import InvalidName
    from mam.surfaces.cli.render_sessions import line

    options = call.options
    if not options.tmux_session.isprintable() or len(options.tmux_session) > 200:
        raise InvalidName("the argument is not the name of a tmux session", hint="tmux ls shows the names")
    session = call.fleet.sessions.adopt(
        options.tmux_session,
        agent=options.agent,
        name=options.session,
        role=options.role,
        pane=options.pane,
        tmux_server=options.tmux_server,
    )
    return call.say({"session": session.row}, f"adopted: {line(session.row)}")
