"""mam board show: a card with its comments."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.target import add_card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which card."""
    add_card(parser)


def run(call: Invocation) -> int:
    """Show it."""
    from mam.surfaces.cli.verbs.board.render_cards import whole

    done = call.fleet.boards.show(call.options.card, board=call.options.board)
    return call.say(done, *([] if call.as_json else whole(done, call.paint())))
