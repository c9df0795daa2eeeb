"""mam adopt: register an agent that runs in tmux already."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Register an agent that somebody started in tmux by hand. The program is not touched; its tmux
session takes the name of the session."""
EXAMPLES = """
  mam adopt work --agent claude --role developer
  mam adopt work --agent codex --session api --pane %7 --tmux-server default"""


def add_options(parser: Parser) -> None:
    """What to adopt, and as what."""
    add = parser.add_argument
    add("tmux_session", metavar="TMUX_SESSION", help="name of the tmux session, exactly")
    add("--agent", metavar="KIND", required=True, help="what runs in it: claude, codex, …")
    add("--session", metavar="NAME", help="name of the new session (default: that of the tmux session)")
    add("--role", metavar="ROLE", help="what the session is for; it never changes once set")
    add("--pane", metavar="%ID", help="which pane, where there are several")
    add(
        "--tmux-server",
        metavar="SERVER",
        help="tmux -L name or socket path; else TMUX_SERVER_NAME, else default",
    )


def run(call: Invocation) -> int:
    """Adopt it and say its name."""
    from mam.core.errors import InvalidName
    from mam.surfaces.cli.render_sessions import line

    options = call.options
    if not options.tmux_session.isprintable() or len(options.tmux_session) > 200:
        raise InvalidName("that is not the name of a tmux session", hint="tmux ls shows them")
    session = call.fleet.sessions.adopt(
        options.tmux_session,
        agent=options.agent,
        name=options.session,
        role=options.role,
        pane=options.pane,
        tmux_server=options.tmux_server,
    )
    return call.say({"session": session.row}, f"adopted: {line(session.row)}")
