"""mam ls: list the sessions and what they are doing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
List the sessions of this root and what they are doing now. The command changes nothing.

RESUME shows the conversation that a resume would continue: its id, its tier, and whether it is on
disk. DRIFT is A if a running session is gone, C if a conversation appeared on disk, D if it
vanished."""
EXAMPLES = """
  mam ls
  mam ls --waiting                     sessions that wait for a person
  mam ls --agent claude --status running --json
  mam ls --all                         sessions of every root on this machine
  mam ls --watch                       repaint when something changes; q quits"""

# What the parser returns for a line of plain flags; see fast_parse.
FLAGS = {"--waiting": "waiting", "--all": "all", "--watch": "watch", "--names": "only_names"}
UNSET: dict[str, tuple[str, ...]] = {"status": (), "agent": (), "role": ()}


def add_options(parser: Parser) -> None:
    """Add the options: which sessions, and in which form."""
    from mam.core.session_row import Status

    add = parser.add_argument
    add(
        "--status",
        action="append",
        default=[],
        choices=[status.value for status in Status],
        help="only sessions with this status; may be repeated",
    )
    add(
        "--agent",
        action="append",
        default=[],
        metavar="KIND",
        help="only sessions of this agent kind; may be repeated",
    )
    add(
        "--role",
        action="append",
        default=[],
        metavar="ROLE",
        help="only sessions of this role; may be repeated",
    )
    add("--waiting", action="store_true", help="only sessions that wait for a person")
    add("--all", action="store_true", help="sessions of every root that mam knows")
    add(
        "--watch",
        action="store_true",
        help="keep the listing up to date; with --json, or into a pipe, print one JSON object per change",
    )
    add("--names", dest="only_names", action="store_true", help="print only the names, one per line")


def run(call: Invocation) -> int:
    """Print the listing."""
    options, filters = call.options, read_filters(call)
    if options.only_names and not call.as_json and not any(filters.values()):
        # Shell completion calls this at every Tab, so only the registry is read.
        return call.say(None, *call.fleet.sessions.names())
    if options.watch:
        from mam.surfaces.cli.ls_watch import watch

        return watch(call, filters, is_filtered=is_filtered(filters))
    document = call.document = call.fleet.sessions.ls(**filters)
    if options.only_names:
        names = _plain_names(document["sessions"])
        return call.say({"names": names}, *names)
    if call.as_json:
        return call.say(document)
    from mam.surfaces.cli.render_listing import show

    workspace = call.fleet.workspace
    return call.say(
        None, *show(document, call.paint(), is_filtered=is_filtered(filters), workspace=workspace)
    )


def read_filters(call: Invocation) -> dict[str, Any]:
    """Return the options that choose sessions, as arguments for the fleet."""
    from mam.core.names import parse_kind

    options = call.options
    return {
        "status": options.status,
        "agent": tuple(parse_kind(kind) for kind in options.agent),
        "role": options.role,
        "waiting": options.waiting,
        "all_roots": options.all,
    }


def is_filtered(filters: dict[str, Any]) -> bool:
    """Tell whether a filter may leave out sessions; --all does not."""
    return any(value for key, value in filters.items() if key != "all_roots")


def _plain_names(sessions: Sequence[Any]) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean

    return [clean(session["name"]) for session in sessions]
