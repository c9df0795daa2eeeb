"""mam read: print what a session's pane shows."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = "Print what a session's pane shows, or the last screen of an ended session. It changes nothing."
EXAMPLES = """
  mam read demo-app-creator-claude
  mam read api --lines 20
  mam read api --scrollback > api.log
  mam read api --parsed --lines 5      the last five messages, model, tokens and context"""


def add_options(parser: Parser) -> None:
    """Add the options: the session, and what to print."""
    from mam.surfaces.cli.parser import add_name, count

    add_name(parser)
    parser.add_argument(
        "--lines", metavar="N", type=count, help="only the last N lines; with --parsed the last N messages"
    )
    parser.add_argument("--scrollback", action="store_true", help="also print the scrollback")
    parser.add_argument(
        "--parsed",
        action="store_true",
        help="print the conversation from the transcript, with model and tokens",
    )


def run(call: Invocation) -> int:
    """Print the screen, or the conversation."""
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli import targets

    name = targets.session(call)
    if call.options.parsed:
        return _parsed(call, name)
    text = call.fleet.sessions.read(name, lines=call.options.lines, scrollback=call.options.scrollback)
    width = call.paint().width
    return call.say(
        {"session": name, "text": text}, *(fit(line, width) for line in for_screen(text).split("\n"))
    )


def _parsed(call: Invocation, name: str) -> int:
    if call.options.scrollback:
        raise Usage("--scrollback prints the screen, --parsed the conversation", hint="use one of them")
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean, figures

    transcript = call.fleet.sessions.transcript(name, turns=call.options.lines or 20)
    paint = call.paint()
    lines: list[str] = []
    for turn in transcript["turns"]:
        head = f"{clean(turn['role'])}  {clean(turn['at'])}" if turn["at"] else clean(turn["role"])
        lines += [paint(head, "bold"), *for_screen(turn["text"]).rstrip("\n").split("\n"), ""]
    if usage := figures(transcript):
        lines.append(paint(usage, "dim"))
    return call.say(transcript, *lines)


def fit(line: str, width: int | None) -> str:
    """Return a line with its longest horizontal rule shortened, so that the line does not wrap."""
    over = 0 if width is None else len(line) - width
    if over <= 0:
        return line
    import re

    longest = max(re.findall(r"([─━═-]{9,})", line), key=len, default="")
    return line.replace(longest, longest[over:] or longest[:1], 1) if longest else line
