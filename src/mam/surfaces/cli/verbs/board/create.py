"""mam board create: create a card, or find the open card with the same key."""

from __future__ import annotations

import re

from mam.core.errors import Usage
from mam.surfaces.cli.text_input import read_argument
from mam.surfaces.cli.verbs.board.render_cards import say_card
from mam.surfaces.cli.verbs.board.target import add_board

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

_PLACE = re.compile(r"(?:scratch|worktree|(?:worktree|dir):.+)\Z", re.DOTALL)


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
    add("--dir", metavar="DIR", help="the directory of the work, as --place dir:DIR")
    add("--place", metavar="PLACE", help="scratch, worktree, worktree:DIR or dir:DIR, as Hermes names them")
    add("--branch", metavar="NAME", help="the branch of a worktree")
    add("--skill", metavar="NAME", action="append", help="a skill that the worker loads; repeatable")
    add_board(parser)


def run(call: Invocation) -> int:
    """Create the card, and print it."""
    options = call.options
    kind, directory = _place(options)
    goal = {"goal_mode": options.goal, "goal_max_turns": options.goal_max_turns, "assignee": options.assignee}
    runtime = int(options.max_runtime) if options.max_runtime else None
    document = call.fleet.boards.create(
        options.title,
        body=read_argument(options.body),
        key=options.key,
        board=options.board,
        max_runtime=runtime,
        max_retries=options.max_retries,
        workspace=directory,
        workspace_kind=kind,
        branch=options.branch,
        skills=options.skill,
        **goal,
    )
    return say_card(call, document)


def _place(options: Namespace) -> tuple[str | None, str | None]:
    """Return the kind of the place, and its directory."""
    import os

    place = options.place
    if place is None and options.workspace and _PLACE.match(options.workspace):
        # Hermes calls the place --workspace; a directory of such a name is ./worktree.
        place, options.workspace = options.workspace, None
    if place is None:
        return None, os.path.abspath(options.dir) if options.dir else None
    if options.dir:
        raise Usage("--dir and --place exclude each other", hint="write --place dir:DIR")
    if not _PLACE.match(place):
        raise Usage(
            f"'{place[:60]}' is no place", hint="places are scratch, worktree, worktree:DIR and dir:DIR"
        )
    kind, _, directory = place.partition(":")
    return kind, os.path.abspath(os.path.expanduser(directory)) if directory else None
