"""mam send: words to a session, with a receipt."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Send words to a session and print what became of them. They are typed only into an empty input
box that was seen just before, and count as submitted once the agent's own hook or transcript
shows them. What cannot be typed now (a dialog, somebody's draft) is held and goes out by itself.

Exit code 0 submitted or queued by the agent, 4 held, 3 typed and not proven, 2 failed."""
EXAMPLES = """
  mam send api "now run the tests"
  mam send api --when idle "and then the linter"     after the turn that runs now
  mam send api --file review.md --timeout 60         wait a minute if it is held
  git diff | mam send reviewer -
  mam send api --command /compact                    a command of the program itself"""


def add_options(parser: Parser) -> None:
    """To whom, what, and when."""
    from mam.surfaces.cli.parser import span

    add = parser.add_argument
    add("words", metavar="NAME TEXT", nargs="*", default=[], help="the session, and the words; - reads them")
    add("--session", metavar="NAME", help="the session, as an option")
    add("--file", metavar="FILE", help="read the words from a file")
    add("--when", choices=("ready", "idle"), default="ready", help="as soon as it takes words, or at rest")
    add("--command", action="store_true", help="a slash command of the program, not words for the model")
    add("--timeout", metavar="TIME", type=span, default=0.0, help="wait so long while it is held (0)")
    add("--conversation", metavar="ID", help="only while this conversation is open; else it is held")
    add(
        "--id",
        dest="message_id",
        metavar="ID",
        help="m_ and some digits; one that was sent is not sent again",
    )


def run(call: Invocation) -> int:
    """Send, and print the receipt."""
    from mam.core.message import EXIT_CODES

    options = call.options
    name, text = target(options)
    done = call.fleet.messages.send(
        name,
        words(text, options.file),
        when=options.when,
        command=options.command,
        timeout=options.timeout,
        message_id=options.message_id,
        conversation=options.conversation,
    )
    call.say(done, show(done))
    return EXIT_CODES[done["state"]]


def target(options: Any) -> tuple[str, str | None]:
    """Return the session that is meant, and the words if they are an argument."""
    given = list(options.words)
    name = options.session or (given.pop(0) if given else None)
    if not name:
        raise Usage("name a session", hint='mam send NAME "words"')
    if len(given) > 1:
        raise Usage(f"one word too many: '{given[1][:60]}'", hint="put quotes around the words")
    return name, given[0] if given else None


def words(text: str | None, path: str | None) -> str:
    """Return what is to be sent: an argument, a file, or standard input."""
    if (text is None) == (path is None):
        raise Usage("give the words as an argument, with --file, or as - on standard input")
    if path is None and text != "-":
        return str(text)
    from mam.surfaces.cli.verbs.create import read_prompt

    return read_prompt("-" if path is None else path)


def show(done: dict[str, Any]) -> str:
    """Return a receipt in one line."""
    from mam.surfaces.cli.render_sessions import clean

    line = f"{done['state']}: {clean(done['message_id'] or '')} to {clean(done['session'])}"
    if done["evidence"]:
        line += f" (by its {clean(done['evidence'])})"
    if done["carrier"] == "file":
        line += ", as a file"
    if done["added"]:
        line += f", with {clean(done['added'])}"
    return f"{line}: {clean(done['reason'])}" if done["reason"] else line
