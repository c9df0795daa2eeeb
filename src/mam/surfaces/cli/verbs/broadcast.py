"""mam broadcast: the same words to several sessions."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Send the same words to every running session that fits, except to yourself, and print what became
of each. Options of different kinds narrow the choice, the same one twice widens it. A program that
mam cannot read is left out of --all.

The exit code is the highest: 0 submitted or queued, 4 held, 3 typed and not proven, 2 failed."""
EXAMPLES = """
  mam broadcast --all "commit what you have"
  mam broadcast --role developer --role tester "the API is frozen"
  mam broadcast --team review --agent claude --when idle "please look again"
  mam broadcast --all --file notice.md"""


def add_options(parser: Parser) -> None:
    """To whom, what, and when."""
    from mam.surfaces.cli.parser import span

    add = parser.add_argument
    add("text", metavar="TEXT", nargs="?", help="the words; - reads them")
    add("--all", action="store_true", help="to every running session of this root")
    add("--role", metavar="ROLE", action="append", default=[], help="to those of this role")
    add("--team", metavar="TEAM", action="append", default=[], help="to those of this team, by name or id")
    add("--agent", metavar="KIND", action="append", default=[], help="to those of this kind")
    add("--file", metavar="FILE", help="read the words from a file")
    add("--when", choices=("ready", "idle"), default="ready", help="as soon as it takes words, or at rest")
    add("--timeout", metavar="TIME", type=span, default=0.0, help="wait so long while one is held (0)")


def run(call: Invocation) -> int:
    """Send, and print the receipts."""
    from mam.core.message import EXIT_CODES
    from mam.surfaces.cli.verbs.send import show, words

    options = call.options
    if options.all and (options.role or options.team or options.agent):
        raise Usage("--all goes with no other choice")
    done = call.fleet.messages.broadcast(
        words(options.text, options.file),
        role=options.role,
        team=options.team,
        agent=options.agent,
        everyone=options.all,
        when=options.when,
        timeout=options.timeout,
    )
    call.say({"results": done}, *map(show, done))
    return max(EXIT_CODES[one["state"]] for one in done)
