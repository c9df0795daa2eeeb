"""mam ls: the sessions and what they are doing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
List the sessions of this root with what they are doing now. Reads only.

RESUME shows the conversation that a resume would take: its id, the tier it was found in, and
whether it is on disk. DRIFT is A where a running session is gone, C where a conversation appeared
on disk, D where it vanished."""
EXAMPLES = """
  mam ls
  mam ls --waiting                     who waits for a person
  mam ls --agent claude --status running --json
  mam ls --all                         of every root on this machine
  mam ls --watch                       repaint as things change; q leaves"""

# What the parser returns for a line of plain flags; see quick.
FLAGS = {"--waiting": "waiting", "--all": "all", "--watch": "watch", "--names": "only_names"}
UNSET: dict[str, tuple[str, ...]] = {"status": (), "agent": (), "role": ()}


def add_options(parser: Parser) -> None:
    """Which ones, and in which form."""
    from mam.core.session_row import Status

    add = parser.add_argument
    add(
        "--status",
        action="append",
        default=[],
        choices=[one.value for one in Status],
        help="only of this status; may be repeated",
    )
    add("--agent", action="append", default=[], metavar="KIND", help="only of this kind; may be repeated")
    add("--role", action="append", default=[], metavar="ROLE", help="only of this role; may be repeated")
    add("--waiting", action="store_true", help="only those that wait for a person")
    add("--all", action="store_true", help="of every root that mam knows")
    add(
        "--watch",
        action="store_true",
        help="keep showing them; with --json, or into a pipe, one JSON object per change",
    )
    add("--names", dest="only_names", action="store_true", help="print names only, one a line")


def run(call: Invocation) -> int:
    """Print the listing."""
    options, wanted = call.options, filters(call)
    if options.only_names and not call.as_json and not any(wanted.values()):
        # Only the registry is read: this is what completion asks at every press of a key.
        return call.say(None, *call.fleet.sessions.names())
    if options.watch:
        from mam.surfaces.cli.ls_watch import watch

        return watch(call, wanted, is_filtered=is_filtered(wanted))
    document = call.fleet.sessions.ls(**wanted)
    if options.only_names:
        names = _plain_names(document["sessions"])
        return call.say({"names": names}, *names)
    if call.as_json:
        return call.say(document)
    from mam.surfaces.cli.render_listing import show

    here = call.fleet.workspace
    return call.say(None, *show(document, call.paint(), is_filtered=is_filtered(wanted), here=here))


def filters(call: Invocation) -> dict[str, Any]:
    """Return the options that choose sessions, as the fleet takes them."""
    from mam.core.names import parse_kind

    options = call.options
    return {
        "status": options.status,
        "agent": tuple(parse_kind(kind) for kind in options.agent),
        "role": options.role,
        "waiting": options.waiting,
        "all_roots": options.all,
    }


def is_filtered(wanted: dict[str, Any]) -> bool:
    """Tell whether sessions are left out on purpose; every root is not such a purpose."""
    return any(value for key, value in wanted.items() if key != "all_roots")


def _plain_names(sessions: Sequence[Any]) -> list[str]:
    from mam.surfaces.cli.render_sessions import clean

    return [clean(one["name"]) for one in sessions]
