"""mam status: show everything about one session; without a name, print the listing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Show everything about one session. Without a name, print the listing of `mam ls`, or exit with 1 if
there is no registry. The command changes nothing."""
EXAMPLES = """
  mam status demo-app-creator-claude
  mam status --json"""


def add_options(parser: Parser) -> None:
    """Add the options: the session."""
    from mam.surfaces.cli.parser import add_name

    add_name(parser)


def run(call: Invocation) -> int:
    """Print the session."""
    from mam.surfaces.cli import targets
    from mam.surfaces.cli.render_sessions import details

    name = targets.optional_session(call)
    if name is None:
        return _listing(call)
    session = call.fleet.sessions.status(name)
    return call.say({"session": session}, *([] if call.as_json else details(session, call.paint())))


def _listing(call: Invocation) -> int:
    from mam.core.errors import Refused
    from mam.core.root_state import RootState
    from mam.surfaces.cli.render_listing import show

    document = call.fleet.sessions.ls()
    if not call.fleet.exists and document["root_state"] == RootState.NEW:
        raise Refused(
            f"there is no registry in {call.fleet.root}",
            hint="mam init or mam create makes one",
        )
    return call.say(
        document,
        *([] if call.as_json else show(document, call.paint(), workspace=call.fleet.workspace)),
    )
