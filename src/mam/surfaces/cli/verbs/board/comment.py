"""mam board comment: comment on a card."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_card, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which card, the text, and who says it."""
    add_card(parser)
    parser.add_argument("text", metavar="TEXT", help="the comment; - reads it from stdin")
    parser.add_argument("--author", metavar="WHO", help="who says it; without it, you or the calling session")


def run(call: Invocation) -> int:
    """Do it, and show the card."""
    given = call.options
    done = call.fleet.boards.comment(
        given.card, read_text(given.text), author=given.author, board=given.board
    )
    return say_card(call, done)
