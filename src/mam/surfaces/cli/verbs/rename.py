"""mam rename: give a session another name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = "Give a session and its tmux session another name. The id does not change."
EXAMPLES = """
  mam rename demo-app-creator-claude api
  mam rename --session s_1f00ab42 api"""


def add_options(parser: Parser) -> None:
    """Add the options: the session and its new name."""
    parser.add_argument("names", nargs="*", metavar="NAME", default=[], help="the session, then its new name")
    parser.add_argument("--session", metavar="NAME", help="the session, as an option")


def run(call: Invocation) -> int:
    """Rename the session, and print its new name."""
    from mam.core.errors import Usage
    from mam.core.names import parse_name
    from mam.surfaces.cli import targets
    from mam.surfaces.cli.render_sessions import clean

    names = [*([call.options.session] if call.options.session is not None else []), *call.options.names]
    if len(names) != 2:
        raise Usage("name the session and its new name", hint="mam rename OLD NEW")
    new = parse_name(names[1])
    session = call.fleet.sessions.rename(targets.check_name(call, names[0]), new)
    return call.say({"session": session.row}, f"{clean(names[0])} is now {clean(session.name)}")
