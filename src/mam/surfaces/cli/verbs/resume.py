"""mam resume: continue ended sessions with their conversations."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet_object import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Continue ended sessions: with the same row, directory, command and conversation.
A session that is alive does not change."""
EXAMPLES = """
  mam resume demo-app-creator-claude
  mam resume --agent claude
  mam resume --all              sessions that died with the machine
  mam resume --all --stopped    also sessions that were stopped"""


def add_options(parser: Parser) -> None:
    """Add the options: the sessions, and how to start them."""
    from mam.surfaces.cli.parser import add_names, add_run_recorded, span

    add_names(parser)
    add = parser.add_argument
    add("--agent", metavar="KIND", help="all ended sessions of this kind")
    add("--all", action="store_true", help="all sessions that died while running, four at a time")
    add("--stopped", action="store_true", help="with --all: also sessions that were stopped")
    add("--no-wait", action="store_true", help="do not wait until the agent is ready")
    add("--trust", action="store_true", help="let the agent trust the directory")
    add_run_recorded(parser)
    add("--timeout", metavar="TIME", type=span, help="how long to wait for each agent: 90, 2m (default 60)")


def run(call: Invocation) -> int:
    """Resume each session, and print the results."""
    from mam.core.errors import Usage
    from mam.core.names import parse_kind
    from mam.surfaces.cli import each_session, targets

    options = call.options
    names = targets.sessions(call)
    by_choice = options.all or options.agent is not None
    if bool(names) == by_choice:
        raise Usage("name sessions, or give --agent KIND or --all", hint="mam ls shows the sessions")
    if options.stopped and not options.all:
        raise Usage("--stopped needs --all", hint="mam resume --all --stopped")
    if by_choice:
        kind = parse_kind(options.agent) if options.agent is not None else None
        names = call.fleet.sessions.resumable(agent=kind, stopped=options.stopped or not options.all)

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        outcome = fleet.sessions.resume(
            name,
            wait=not options.no_wait,
            trust=options.trust,
            run_recorded=options.run_recorded,
            timeout=options.timeout,
        )
        return each_session.answer(outcome, "resumed")

    return each_session.run(
        call, names, work, several=by_choice or len(names) > 1, nothing="nothing to resume"
    )
