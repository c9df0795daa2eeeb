"""mam board claim: take a card for some time."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which card, who takes it, and for how long."""
    add_claim(parser)


def run(call: Invocation) -> int:
    """Do it, and show the card."""
    given = call.options
    done = call.fleet.boards.claim(given.card, who=given.who, ttl=given.ttl, board=given.board)
    return say_card(call, done)
