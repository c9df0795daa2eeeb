"""mam restart: stop sessions and resume them."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet_object import Fleet
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = "Stop sessions and resume them with their conversations, in the same rows."
EXAMPLES = """
  mam restart demo-app-creator-claude
  mam restart api web --reason "new MCP server"
  mam restart --all"""


def add_options(parser: Parser) -> None:
    """Add the options: the sessions, the reason, and how to stop and start them."""
    from mam.surfaces.cli.parser import add_names, add_run_recorded, span

    add_names(parser)
    parser.add_argument(
        "--all", action="store_true", help="every running session of this root, four at a time"
    )
    parser.add_argument("--reason", metavar="TEXT", help="reason, for the log")
    parser.add_argument(
        "--force", action="store_true", help="kill at once instead of asking the agent to exit"
    )
    add_run_recorded(parser)
    parser.add_argument(
        "--timeout", metavar="TIME", type=span, help="how long to wait for each agent: 90, 2m (default 60)"
    )


def run(call: Invocation) -> int:
    """Restart each session, and print the results."""
    from mam.core.errors import Usage
    from mam.core.session_row import Status
    from mam.surfaces.cli import each_session, targets

    options = call.options
    names = targets.sessions(call)
    if bool(names) == options.all:
        raise Usage("name sessions, or give --all", hint="mam ls shows the running sessions")
    if options.all:
        names = call.fleet.sessions.names(status=[Status.RUNNING])

    def work(fleet: Fleet, name: str) -> tuple[dict[str, Any], str]:
        outcome = fleet.sessions.restart(
            name,
            reason=options.reason,
            force=options.force,
            run_recorded=options.run_recorded,
            timeout=options.timeout,
        )
        return each_session.answer(outcome, "restarted")

    return each_session.run(
        call, names, work, several=options.all or len(names) > 1, nothing="no session is running"
    )
