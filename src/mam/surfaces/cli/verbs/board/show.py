"""mam board show: print a card with its comments."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.target import add_card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the card and the board."""
    add_card(parser)


def run(call: Invocation) -> int:
    """Print the card."""
    from mam.surfaces.cli.verbs.board.render_cards import details

    document = call.fleet.boards.show(call.options.card, board=call.options.board)
    return call.say(document, *([] if call.as_json else details(document, call.paint())))
