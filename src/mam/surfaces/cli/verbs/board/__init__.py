"""mam board: the cards of a Kanban board, ours or Hermes'. One file per word."""

from __future__ import annotations

from mam.surfaces.cli.verb_table import load_word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Make, show, claim and end the cards of a Kanban board.

Every root has a board of its own, in .mam/state.db. Where HERMES_KANBAN_TASK or HERMES_KANBAN_DB
are set, or with --board hermes, it is Hermes' board, found as Hermes finds it. A claim runs out
unless a heartbeat extends it. Each answer is the card as the board shows it afterwards."""
EXAMPLES = """
  mam board create "watch the deploy" --body "tell me when it is through"
  mam board list
  mam board show t_1f00ab42
  mam board comment t_1f00ab42 "stop monitoring"
  mam board claim t_1f00ab42 --as builder --ttl 30m
  mam board heartbeat t_1f00ab42 --as builder --note "3 of 5 done"
  mam board block t_1f00ab42 "which of the two databases?"
  mam board complete t_1f00ab42 --summary "deployed at 14:05" --json"""
WORDS = {
    "create": "make a card, or find the one of the same key",
    "list": "list the cards that are not archived",
    "show": "show a card with its comments",
    "comment": "comment on a card",
    "claim": "take a card for some time",
    "heartbeat": "say that work goes on, and extend the claim",
    "block": "end the work until a person decides",
    "complete": "say that a card is done",
}


def add_options(parser: Parser) -> None:
    """Which word, and its options."""
    from mam.surfaces.cli.parser import add_words

    words = {word: (summary, load_word("board", word).add_options) for word, summary in WORDS.items()}
    add_words(parser, words, EXAMPLES)


def run(call: Invocation) -> int:
    """Do what the word says."""
    return int(load_word("board", call.options.word).run(call))
