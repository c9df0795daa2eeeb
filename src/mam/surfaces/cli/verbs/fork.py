"""mam fork: start a second session from a copy of a conversation."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Start a second session whose conversation begins as a copy of another session's. The first session
does not change; from then on the two conversations are independent."""
EXAMPLES = """
  mam fork demo-app-creator-claude
  mam fork api --session api-idea --role explorer"""


def add_options(parser: Parser) -> None:
    """Add the options: the session to copy, and the new session."""
    from mam.surfaces.cli.parser import add_run_recorded, span

    add = parser.add_argument
    add("name", metavar="NAME", help="name or id of the session to copy")
    add("--session", metavar="NEW", help="name of the new session (default: made from the directory)")
    add("--role", metavar="ROLE", help="role of the new session (default: the same)")
    add("--no-wait", action="store_true", help="do not wait until the agent is ready")
    add_run_recorded(parser)
    add("--timeout", metavar="TIME", type=span, help="how long to wait for the agent: 90, 2m (default 60)")


def run(call: Invocation) -> int:
    """Fork the session, and print the new one."""
    from mam.core.names import parse_name
    from mam.surfaces.cli import targets
    from mam.surfaces.cli.render_sessions import line

    options = call.options
    new = parse_name(options.session) if options.session is not None else None
    session = call.fleet.sessions.fork(
        targets.check_name(call, options.name),
        name=new,
        role=options.role,
        wait=not options.no_wait,
        run_recorded=options.run_recorded,
        timeout=options.timeout,
    )
    return call.say({"session": session.row}, f"forked: {line(session.row)}")
