"""mam rebalance: put the window of a team in order."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Put the window of a team in order: the master in the main place, the others beside it in the order
in which they came. If the number of panes is not what it should be, it is done once more."""
EXAMPLES = """
  mam rebalance
  mam rebalance --main top"""


def add_options(parser: Parser) -> None:
    """Where the master stands, and which team."""
    parser.add_argument("--main", choices=("left", "top"), help="where the master stands (as it was)")
    parser.add_argument("--team", metavar="TEAM", help="which team, where it is not that of this window")


def run(call: Invocation) -> int:
    """Put it in order."""
    from mam.surfaces.cli.render_sessions import clean

    done = call.fleet.teams.rebalance(main=call.options.main, team=call.options.team)
    found, wanted = len(done["panes"]), done["expected"]
    note = ""
    if found > wanted:
        note = f" (the team has {wanted}; the others are not its own)"
    elif found < wanted:
        note = f" (the team had {wanted}: a pane of it is gone)"
    return call.say(done, f"{clean(done['team'])}: {found} panes, {clean(done['layout'])}{note}")
