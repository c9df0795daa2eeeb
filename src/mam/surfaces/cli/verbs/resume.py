"""mam resume: take ended sessions up again."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Take sessions up again: the same row, directory, command and conversation.
A session that is alive is left as it is."""
EXAMPLES = """
  mam resume demo-app-creator-claude
  mam resume --agent claude
  mam resume --all              those that died with the machine
  mam resume --all --stopped    those that were stopped as well"""


def add_options(parser: Parser) -> None:
    """Which ones, and how."""
    from mam.surfaces.cli.parser import add_names, span

    add_names(parser)
    add = parser.add_argument
    add("--agent", metavar="KIND", help="the ended sessions of this kind")
    add("--all", action="store_true", help="those that were running when they died, four at a time")
    add("--stopped", action="store_true", help="with --all: also those that were stopped")
    add("--no-wait", action="store_true", help="do not wait until the agent is ready")
    add(
        "--trust",
        action="store_true",
        help="let the agent trust the directory, and run what a row says that came along with it",
    )
    add("--timeout", metavar="TIME", type=span, help="how long to wait for each: 90, 2m (default 60)")


def run(call: Invocation) -> int:
    """Resume each and say what came of it."""
    from mam.core.errors import Usage
    from mam.core.names import parse_kind
    from mam.surfaces.cli import batch, targets

    options = call.options
    names = targets.several(call)
    by_choice = options.all or options.agent is not None
    if bool(names) == by_choice:
        raise Usage("name sessions, or give --agent KIND or --all", hint="mam ls shows what there is")
    if options.stopped and not options.all:
        raise Usage("--stopped goes with --all")
    if by_choice:
        kind = parse_kind(options.agent) if options.agent is not None else None
        names = call.fleet.sessions.resumable(agent=kind, stopped=options.stopped or not options.all)

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        done = fleet.sessions.resume(
            name, wait=not options.no_wait, trust=options.trust, timeout=options.timeout
        )
        return batch.told(done, "resumed")

    return batch.run(call, names, work, several=by_choice or len(names) > 1, nothing="nothing to resume")
