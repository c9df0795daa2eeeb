"""mam close: end a member of a team."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
End a member of a team with its own exit command, remove its pane and rearrange the window.

mam refuses until the member's checklist is complete: report received, task done, session id saved,
ready to close. mam report ticks these items; --force ignores them. --accept takes a report that
you have seen as received, although nothing proves that it arrived; the log names you. mam never
closes a master's pane, or the pane that this command runs in."""
EXAMPLES = """
  mam close dev
  mam close dev --accept     its report is unconfirmed, and you have read it
  mam close dev-2 --force"""


def add_options(parser: Parser) -> None:
    """Add the options: the member, and whether to accept its report or to ignore its checklist."""
    from mam.surfaces.cli.parser import add_name

    add_name(parser)
    parser.add_argument(
        "--accept", action="store_true", help="take its report as received, although nothing proves that"
    )
    parser.add_argument(
        "--force", action="store_true", help="ignore the checklist; unfinished tasks become pending again"
    )


def run(call: Invocation) -> int:
    """Close the member."""
    from mam.core.errors import Usage
    from mam.surfaces.cli.render_sessions import clean, line

    name = call.options.session or call.options.name
    if not name:
        raise Usage("name a session", hint="mam close NAME; mam team list shows them")
    document = call.fleet.teams.close(name, force=call.options.force, accept=call.options.accept)
    note = f" ({clean(document['note'])})" if document["note"] else ""
    return call.say(
        document, f"{'closed' if document['changed'] else 'nothing to do'}: {line(document['session'])}{note}"
    )
