"""mam forget: drop ended sessions from the registry."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Drop ended sessions from the registry. The agents' own files of their conversations stay.
With --worktree the git worktree goes too, unless work in it would be lost."""
EXAMPLES = """
  mam forget demo-app-creator-claude
  mam forget api --worktree
  mam forget --older-than 30d --yes"""


def add_options(parser: Parser) -> None:
    """Which ones."""
    from mam.surfaces.cli.parser import add_names, span

    add_names(parser)
    add = parser.add_argument
    add("--older-than", metavar="TIME", type=span, help="all that ended longer ago: 12h, 7d, 4w")
    add("--worktree", action="store_true", help="also remove the session's git worktree")
    add("--yes", action="store_true", help="do not ask before several are dropped")


def run(call: Invocation) -> int:
    """Forget each and say so."""
    from mam.core.errors import Usage
    from mam.surfaces.cli import batch, targets

    options = call.options
    names = targets.several(call)
    by_age = options.older_than is not None
    if bool(names) == by_age:
        raise Usage("name sessions, or give --older-than TIME", hint="mam ls shows what has ended")
    if by_age:
        names = call.fleet.sessions.forgettable(older_than=options.older_than)
        if names and not options.yes:
            _confirm(call, names)

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        document = fleet.sessions.forget(name, worktree=options.worktree)
        return document, f"forgotten: {document['forgotten']}"

    return batch.run(call, names, work, several=by_age or len(names) > 1, nothing="nothing is that old")


def _confirm(call: Invocation, names: list[str]) -> None:
    from mam.core.errors import NeedsConfirmation, Refused
    from mam.surfaces.cli.output import write_lines
    from mam.surfaces.cli.render_sessions import clean

    which = f"{len(names)} session{'' if len(names) == 1 else 's'}"
    if not call.may_ask():
        raise NeedsConfirmation(f"{which} would be forgotten; nothing was", hint="repeat with --yes")
    write_lines(clean(name) for name in names)
    if not call.ask(f"Forget {which}?"):
        raise Refused("not confirmed; nothing was forgotten")
