"""mam board comment: comment on a card."""

from __future__ import annotations

from mam.surfaces.cli.text_input import read_argument
from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the card, the text and the author."""
    add_card(parser)
    parser.add_argument("text", metavar="TEXT", help="the comment; - reads it from stdin")
    parser.add_argument("--author", metavar="WHO", help="the author (default: you or the calling session)")


def run(call: Invocation) -> int:
    """Add the comment, and print the card."""
    options = call.options
    document = call.fleet.boards.comment(
        options.card, read_argument(options.text), author=options.author, board=options.board
    )
    return say_card(call, document)
