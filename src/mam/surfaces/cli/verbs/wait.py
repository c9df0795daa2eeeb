"""mam wait: wait until a session has an activity or shows a text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Wait until a session is idle, working or waiting, has exited, or shows a text.
Exit code 2 after the timeout, or if the session has ended."""
EXAMPLES = """
  mam wait demo-app-creator-claude --for idle --timeout 10m
  mam wait api --for 'text:tests? passed'
  mam wait api --for waiting && mam attach api"""


def add_options(parser: Parser) -> None:
    """Add the options: the session, the condition and the timeout."""
    from mam.surfaces.cli.parser import add_name, span

    add_name(parser)
    add = parser.add_argument
    add(
        "--for",
        dest="condition",
        metavar="COND",
        required=True,
        help="idle, working, waiting, exited, text:REGEX",
    )
    add("--timeout", metavar="TIME", type=span, help="give up after this time: 90, 2m (default: never)")


def run(call: Invocation) -> int:
    """Wait, and print the session's activity."""
    from mam.core.safe_text import one_line
    from mam.surfaces.cli import targets
    from mam.surfaces.cli.output import write_json
    from mam.surfaces.cli.render_sessions import activity, clean

    name, condition = targets.session(call), call.options.condition
    call.show_progress(f"waiting until {name} is {one_line(condition, 60)}")
    session = call.fleet.sessions.wait(name, condition, timeout=call.options.timeout)
    if call.as_json:
        write_json(call.with_warnings({"session": session}), one_line=True)
        return 0
    return call.say(None, f"{clean(session.get('name'))}: {activity(session)}")
