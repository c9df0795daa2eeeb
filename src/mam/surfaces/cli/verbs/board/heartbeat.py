"""mam board heartbeat: report that work continues, and extend the claim."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the card, the claimant, the duration and a note."""
    add_claim(parser)
    parser.add_argument("--note", metavar="TEXT", help="the progress, with numbers")


def run(call: Invocation) -> int:
    """Extend the claim, and print the card."""
    options = call.options
    document = call.fleet.boards.heartbeat(
        options.card, note=options.note, who=options.who, ttl=options.ttl, board=options.board
    )
    return say_card(call, document)
