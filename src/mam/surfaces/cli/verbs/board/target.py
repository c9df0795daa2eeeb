"""Arguments that several subcommands of `mam board` share: the board, the card, the claim."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.parser import Parser

BOARDS = ("ours", "hermes")


def add_board(parser: Parser) -> None:
    """Add the option for the board."""
    parser.add_argument("--board", choices=BOARDS, help="the board (default: from the environment)")


def add_card(parser: Parser) -> None:
    """Add the arguments for one card."""
    parser.add_argument("card", metavar="CARD", help="id of the card, as mam board list shows it")
    add_board(parser)


def add_claim(parser: Parser) -> None:
    """Add the arguments for one card, its claimant and the duration of the claim."""
    from mam.surfaces.cli.parser import span

    add_card(parser)
    parser.add_argument(
        "--as", dest="who", metavar="WHO", help="who claims it (default: you or the calling session)"
    )
    parser.add_argument("--ttl", metavar="TIME", type=span, help="how long the claim lasts (15m)")
