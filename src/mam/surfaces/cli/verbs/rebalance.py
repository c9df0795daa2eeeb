"""mam rebalance: rearrange the panes of a team's window."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Rearrange the panes of a team's window: the master in the main place, the other members beside it
in the order in which they joined. If the number of panes is not the expected one, mam tries once
more."""
EXAMPLES = """
  mam rebalance
  mam rebalance --main top"""


def add_options(parser: Parser) -> None:
    """Add the options: the place of the master, and the team."""
    parser.add_argument("--main", choices=("left", "top"), help="place of the master (default: as it is)")
    parser.add_argument("--team", metavar="TEAM", help="the team (default: that of this window)")


def run(call: Invocation) -> int:
    """Rearrange the window."""
    from mam.surfaces.cli.render_sessions import clean

    document = call.fleet.teams.rebalance(main=call.options.main, team=call.options.team)
    count, expected = len(document["panes"]), document["expected"]
    note = ""
    if count > expected:
        note = f" (the team has {expected}; the other panes do not belong to it)"
    elif count < expected:
        note = f" (the team had {expected}; one of them is gone)"
    return call.say(document, f"{clean(document['team'])}: {count} panes, {clean(document['layout'])}{note}")
