"""mam broadcast: send the same message to several sessions."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Send the same message to every running session that matches, except the calling one, and print the
receipts. A session must match all kinds of options; of an option that is repeated, it must match
one. --all skips programs whose screen mam cannot read.

The exit code is the highest: 0 submitted or queued, 4 held, 3 typed and not proven, 2 failed."""
EXAMPLES = """
  mam broadcast --all "commit what you have"
  mam broadcast --role developer --role tester "the API is frozen"
  mam broadcast --team review --agent claude --when idle "please look again"
  mam broadcast --all --file notice.md"""


def add_options(parser: Parser) -> None:
    """Add the options: the sessions, the text and the time."""
    from mam.surfaces.cli.parser import span

    add = parser.add_argument
    add("text", metavar="TEXT", nargs="?", help="the text; - reads it from stdin")
    add("--all", action="store_true", help="to every running session of this root")
    add("--role", metavar="ROLE", action="append", default=[], help="to sessions of this role")
    add("--team", metavar="TEAM", action="append", default=[], help="to members of this team, by name or id")
    add("--agent", metavar="KIND", action="append", default=[], help="to sessions of this agent kind")
    add("--file", metavar="FILE", help="read the text from a file")
    add(
        "--when",
        choices=("ready", "idle"),
        default="ready",
        help="as soon as the agent takes input, or only when it is idle",
    )
    add(
        "--timeout", metavar="TIME", type=span, default=0.0, help="wait this long while a message is held (0)"
    )


def run(call: Invocation) -> int:
    """Send the messages, and print the receipts."""
    from mam.core.message_rules import EXIT_CODES
    from mam.surfaces.cli.verbs.send import read_message, show

    options = call.options
    if options.all and (options.role or options.team or options.agent):
        raise Usage("--all excludes --role, --team and --agent", hint="leave out --all, or the others")
    receipts = call.fleet.messages.broadcast(
        read_message(options.text, options.file),
        role=options.role,
        team=options.team,
        agent=options.agent,
        everyone=options.all,
        when=options.when,
        timeout=options.timeout,
    )
    call.say({"results": receipts}, *map(show, receipts))
    return max(EXIT_CODES[receipt["state"]] for receipt in receipts)
