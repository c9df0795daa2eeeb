"""mam board claim: claim a card for some time."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_claim

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the card, the claimant and the duration."""
    add_claim(parser)


def run(call: Invocation) -> int:
    """Claim the card, and print it."""
    options = call.options
    document = call.fleet.boards.claim(options.card, who=options.who, ttl=options.ttl, board=options.board)
    return say_card(call, document)
