"""Which board and which card a command line means."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.parser import Parser

BOARDS = ("ours", "hermes")


def add_board(parser: Parser) -> None:
    """Take the board."""
    parser.add_argument("--board", choices=BOARDS, help="which board; without it the environment decides")


def add_card(parser: Parser) -> None:
    """Take one card."""
    parser.add_argument("card", metavar="CARD", help="id of the card, as mam board list shows it")
    add_board(parser)


def add_claim(parser: Parser) -> None:
    """Take one card, who claims it, and for how long."""
    from mam.surfaces.cli.parser import span

    add_card(parser)
    parser.add_argument(
        "--as", dest="who", metavar="WHO", help="who takes it; else you or the calling session"
    )
    parser.add_argument("--ttl", metavar="TIME", type=span, help="how long the claim lasts (15m)")


def read_text(given: str) -> str:
    """Return a text as it was given; `-` reads it from stdin."""
    return sys.stdin.read() if given == "-" else given
