"""mam board list: list the cards that are not archived."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.target import add_board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the status and the board."""
    parser.add_argument(
        "--status", metavar="STATUS", help="only cards with this status: ready, running, blocked, done, ..."
    )
    add_board(parser)


def run(call: Invocation) -> int:
    """Print the cards."""
    from mam.surfaces.cli.verbs.board.render_cards import table

    document = call.fleet.boards.list(status=call.options.status, board=call.options.board)
    return call.say(document, *([] if call.as_json else table(document, call.paint())))
