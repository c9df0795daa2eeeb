"""mam forget: remove ended sessions from the registry."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet_object import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Remove ended sessions from the registry, and the messages to them, also from the copies
of the state. What they sent to others remains, and so do the agents' own files of the
conversations.
--worktree also removes the git worktree, unless work in it would be lost."""
EXAMPLES = """
  mam forget demo-app-creator-claude
  mam forget api --worktree
  mam forget --older-than 30d --yes"""


def add_options(parser: Parser) -> None:
    """Add the options: the sessions, and what to remove."""
    from mam.surfaces.cli.parser import add_names, span

    add_names(parser)
    add = parser.add_argument
    add("--older-than", metavar="TIME", type=span, help="all sessions that ended longer ago: 12h, 7d, 4w")
    add("--worktree", action="store_true", help="also remove the session's git worktree")
    add("--yes", action="store_true", help="do not ask for confirmation")


def run(call: Invocation) -> int:
    """Forget each session."""
    from mam.core.errors import Usage
    from mam.surfaces.cli import each_session, targets

    options = call.options
    names = targets.sessions(call)
    by_age = options.older_than is not None
    if bool(names) == by_age:
        raise Usage("name sessions, or give --older-than TIME", hint="mam ls shows the ended sessions")
    if by_age:
        names = call.fleet.sessions.forgettable(older_than=options.older_than)
        if names and not options.yes:
            _confirm(call, names)

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        document = fleet.sessions.forget(name, worktree=options.worktree)
        return document, f"forgotten: {document['forgotten']}"

    return each_session.run(
        call, names, work, several=by_age or len(names) > 1, nothing="no session is that old"
    )


def _confirm(call: Invocation, names: list[str]) -> None:
    from mam.core.errors import NeedsConfirmation, Refused
    from mam.surfaces.cli.output import write_lines
    from mam.surfaces.cli.render_sessions import clean

    count = f"{len(names)} session{'' if len(names) == 1 else 's'}"
    if not call.may_ask():
        raise NeedsConfirmation(
            f"mam would forget {count}; it has not changed anything", hint="repeat with --yes"
        )
    write_lines(clean(name) for name in names)
    if not call.ask(f"Forget {count}?"):
        raise Refused("not confirmed; mam has not forgotten anything")
