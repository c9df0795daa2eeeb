"""mam board create: create a card, or find the open card with the same key."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_board, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """Add the options: the fields of the card."""
    from mam.surfaces.cli.parser import count, span

    add = parser.add_argument
    add("title", metavar="TITLE", help="title of the card, in one line")
    add("--body", metavar="TEXT", default="", help="text of the card; - reads it from stdin")
    add("--key", metavar="KEY", help="return the open card with this key instead of creating a second one")
    add("--assignee", metavar="WHO", help="who does the work; on Hermes' board a profile")
    add("--goal", action="store_true", help="continue the work until a judge says that the goal is reached")
    add("--goal-max-turns", metavar="N", type=count, help="at most this many turns for a goal")
    add("--max-runtime", metavar="TIME", type=span, help="time limit of a worker: 90, 30m, 8h")
    add("--max-retries", metavar="N", type=count, help="block the card after this many failures")
    add("--dir", metavar="DIR", help="the directory of the work")
    add_board(parser)


def run(call: Invocation) -> int:
    """Create the card, and print it."""
    import os

    options = call.options
    goal = {"goal_mode": options.goal, "goal_max_turns": options.goal_max_turns, "assignee": options.assignee}
    runtime = int(options.max_runtime) if options.max_runtime else None
    document = call.fleet.boards.create(
        options.title,
        body=read_text(options.body),
        key=options.key,
        board=options.board,
        max_runtime=runtime,
        max_retries=options.max_retries,
        workspace=os.path.abspath(options.dir) if options.dir else None,
        **goal,
    )
    return say_card(call, document)
