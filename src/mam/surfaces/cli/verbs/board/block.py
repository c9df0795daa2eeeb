"""mam board block: stop the work on a card until a person decides."""

from __future__ import annotations

from mam.core.errors import Usage
from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_card

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the card and the reason."""
    add_card(parser)
    parser.add_argument("reason", metavar="REASON", help="one sentence: what a person has to decide")


def run(call: Invocation) -> int:
    """Block the card, and print it."""
    if not call.options.reason.strip():
        raise Usage("the reason is empty", hint="say what a person has to decide")
    document = call.fleet.boards.block(call.options.card, call.options.reason, board=call.options.board)
    return say_card(call, document)
