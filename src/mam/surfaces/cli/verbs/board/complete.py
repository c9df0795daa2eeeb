"""mam board complete: complete a card."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the card and the summary."""
    add_card(parser)
    parser.add_argument("--summary", metavar="TEXT", default="", help="the result")


def run(call: Invocation) -> int:
    """Complete the card, and print it."""
    document = call.fleet.boards.complete(call.options.card, call.options.summary, board=call.options.board)
    return say_card(call, document)
