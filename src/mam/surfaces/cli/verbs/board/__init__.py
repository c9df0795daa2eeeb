"""mam board: the cards of a Kanban board, mam's own or Hermes'. One file per subcommand."""

from __future__ import annotations

from mam.surfaces.cli.verb_table import load_subcommand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Create, show, claim and complete the cards of a Kanban board.

Every root has its own board, in .mam/state.db. With --board hermes, or if HERMES_KANBAN_TASK or
HERMES_KANBAN_DB is set, the commands use Hermes' board, which mam finds as Hermes does. A claim
expires unless a heartbeat extends it. Each command prints the card as it is afterwards.

Exit code 0 success; 1 no such card, or somebody else has claimed it; 2 the board cannot be reached;
64 wrong usage; 65 the database is damaged."""
EXAMPLES = """
  mam board create "watch the deploy" --body "tell me when it is through"
  mam board list
  mam board show t_1f00ab42
  mam board comment t_1f00ab42 "stop monitoring"
  mam board claim t_1f00ab42 --as builder --ttl 30m
  mam board heartbeat t_1f00ab42 --as builder --note "3 of 5 done"
  mam board block t_1f00ab42 "which of the two databases?"
  mam board complete t_1f00ab42 --summary "deployed at 14:05" --json"""
SUBCOMMANDS = {
    "create": "create a card, or find the open card with the same key",
    "list": "list the cards that are not archived",
    "show": "show a card with its comments",
    "comment": "comment on a card",
    "claim": "claim a card for some time",
    "heartbeat": "report that work continues, and extend the claim",
    "block": "stop the work until a person decides",
    "complete": "complete a card",
}


def add_options(parser: Parser) -> None:
    """Add the subcommands."""
    from mam.surfaces.cli.parser import add_subcommands

    subcommands = {
        name: (summary, load_subcommand("board", name).add_options) for name, summary in SUBCOMMANDS.items()
    }
    add_subcommands(parser, subcommands, EXAMPLES)


def run(call: Invocation) -> int:
    """Run the subcommand."""
    return int(load_subcommand("board", call.options.subcommand).run(call))
