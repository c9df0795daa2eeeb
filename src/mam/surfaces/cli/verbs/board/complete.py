"""mam board complete: say that a card is done."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which card, and what came of it."""
    add_card(parser)
    parser.add_argument("--summary", metavar="TEXT", default="", help="what came of it")


def run(call: Invocation) -> int:
    """Do it, and show the card."""
    done = call.fleet.boards.complete(call.options.card, call.options.summary, board=call.options.board)
    return say_card(call, done)
