"""mam board block: end the work until a person decides."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Which card, and what has to be decided."""
    add_card(parser)
    parser.add_argument("reason", metavar="REASON", help="one sentence: what has to be decided")


def run(call: Invocation) -> int:
    """Do it, and show the card."""
    if not call.options.reason.strip():
        raise Usage("say what has to be decided")
    done = call.fleet.boards.block(call.options.card, call.options.reason, board=call.options.board)
    return say_card(call, done)
