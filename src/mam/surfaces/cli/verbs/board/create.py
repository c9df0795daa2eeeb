"""mam board create: make a card, or find the one of the same key."""

from __future__ import annotations

from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_board, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser


def add_options(parser: Parser) -> None:
    """What the card says."""
    from mam.surfaces.cli.parser import count, span

    add = parser.add_argument
    add("title", metavar="TITLE", help="what it is about, in one line")
    add("--body", metavar="TEXT", default="", help="the whole of it; - reads it from stdin")
    add("--key", metavar="KEY", help="an open card of this key is returned instead of a second one")
    add("--assignee", metavar="WHO", help="who is to do it; on Hermes' board a profile")
    add("--goal", action="store_true", help="worked on until a judge says that the goal is reached")
    add("--goal-max-turns", metavar="N", type=count, help="at most so many turns of a goal")
    add("--max-runtime", metavar="TIME", type=span, help="a worker's time: 90, 30m, 8h")
    add("--max-retries", metavar="N", type=count, help="blocked after so many failures")
    add("--dir", metavar="DIR", help="where the work is done")
    add_board(parser)


def run(call: Invocation) -> int:
    """Make it, and show it."""
    import os

    given = call.options
    goal = {"goal_mode": given.goal, "goal_max_turns": given.goal_max_turns, "assignee": given.assignee}
    runtime = int(given.max_runtime) if given.max_runtime else None
    done = call.fleet.boards.create(
        given.title,
        body=read_text(given.body),
        key=given.key,
        board=given.board,
        max_runtime=runtime,
        max_retries=given.max_retries,
        workspace=os.path.abspath(given.dir) if given.dir else None,
        **goal,
    )
    return say_card(call, done)
