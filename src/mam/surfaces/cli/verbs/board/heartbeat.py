"""mam board heartbeat: say that work goes on, and extend the claim."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which card, who works on it, and how it stands."""
    add_claim(parser)
    parser.add_argument("--note", metavar="TEXT", help="how it stands, with numbers")


def run(call: Invocation) -> int:
    """Do it, and show the card."""
    given = call.options
    done = call.fleet.boards.heartbeat(
        given.card, note=given.note, who=given.who, ttl=given.ttl, board=given.board
    )
    return say_card(call, done)
