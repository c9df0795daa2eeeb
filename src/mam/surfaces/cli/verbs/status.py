"""mam status: one session, whole; without a name, the listing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Show one session with everything that is known about it now. Without a name: the listing of
`mam ls`, and exit code 1 where there is no registry. Reads only."""
EXAMPLES = """
  mam status demo-app-creator-claude
  mam status --json"""


def add_options(parser: Parser) -> None:
    """Which one."""
    from mam.surfaces.cli.parser import add_name

    add_name(parser)


def run(call: Invocation) -> int:
    """Print the session."""
    from mam.surfaces.cli import targets
    from mam.surfaces.cli.render_sessions import whole

    name = targets.one_or_none(call)
    if name is None:
        return _listing(call)
    found = call.fleet.sessions.status(name)
    return call.say({"session": found}, *([] if call.as_json else whole(found, call.paint())))


def _listing(call: Invocation) -> int:
    from mam.core.errors import Refused
    from mam.surfaces.cli.render_listing import show

    if not call.fleet.exists:
        raise Refused(
            f"there is no registry in {call.fleet.root}",
            hint="mam init makes one; mam create does so as well",
        )
    document = call.fleet.sessions.ls()
    return call.say(
        document,
        *([] if call.as_json else show(document, call.paint(), here=call.fleet.workspace)),
    )
