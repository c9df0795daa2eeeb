"""mam send: send a message to a session, and print the receipt."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Send a message to a session, and print the receipt. mam types a message only into an input box that
is visible and empty. A message counts as submitted when the agent's hook or transcript proves it;
for a slash command, the screen. If mam cannot type now (a dialog is open, the input box holds a
draft), it holds the message and types it later.

Exit code 0 submitted or queued by the agent, 4 held, 3 typed and not proven, 2 failed."""
EXAMPLES = """
  mam send api "now run the tests"
  mam send api --when idle "and then the linter"     after the current turn
  mam send api --file review.md --timeout 60         wait a minute if it is held
  git diff | mam send reviewer -
  mam send api --command /compact                    a command of the agent program"""


def add_options(parser: Parser) -> None:
    """Add the options: the session, the text and the time."""
    from mam.surfaces.cli.parser import span

    add = parser.add_argument
    add(
        "words",
        metavar="NAME TEXT",
        nargs="*",
        default=[],
        help="the session, and the text; - reads it from stdin",
    )
    add("--session", metavar="NAME", help="the session, as an option")
    add("--file", metavar="FILE", help="read the text from a file")
    add(
        "--when",
        choices=("ready", "idle"),
        default="ready",
        help="as soon as the agent takes input, or only when it is idle",
    )
    add("--command", action="store_true", help="a slash command of the program, not a text for the model")
    add(
        "--timeout",
        metavar="TIME",
        type=span,
        default=0.0,
        help="wait this long while the message is held (0)",
    )
    add("--conversation", metavar="ID", help="hold the message unless this conversation is open")
    add(
        "--id",
        dest="message_id",
        metavar="ID",
        help="id of the message: m_ and letters, digits or -; mam sends an id only once",
    )


def run(call: Invocation) -> int:
    """Send the message, and print the receipt."""
    from mam.core.message_rules import EXIT_CODES

    options = call.options
    name, text = split_arguments(options)
    message = read_message(text, options.file)
    receipt = call.fleet.messages.send(
        name,
        message,
        when=options.when,
        command=options.command,
        timeout=options.timeout,
        message_id=options.message_id,
        conversation=options.conversation,
    )
    line = show(receipt)
    if message.startswith("/") and (receipt["added"] or receipt["carrier"] == "file"):
        line += "; sent as text; a command of the program: --command"
    call.say(receipt, line)
    if not call.as_json and receipt["state"] == "held" and receipt["reason"].endswith("dialog is open"):
        from mam.surfaces.cli.verbs.answer import how_to_answer

        call.show_note(how_to_answer(receipt["session"]))
    return EXIT_CODES[receipt["state"]]


def split_arguments(options: Any) -> tuple[str, str | None]:
    """Return the name of the session, and the text if it is an argument."""
    arguments = list(options.words)
    name = options.session or (arguments.pop(0) if arguments else None)
    if not name:
        raise Usage("name a session", hint='mam send NAME "text"')
    if len(arguments) > 1:
        raise Usage(f"unexpected argument: '{arguments[1][:60]}'", hint="put quotes around the text")
    return name, arguments[0] if arguments else None


def read_message(text: str | None, path: str | None) -> str:
    """Return the text of the message: from the argument, a file, or standard input."""
    if (text is None) == (path is None):
        raise Usage(
            "give the text as an argument, with --file, or as - on standard input",
            hint='mam send NAME "text", or mam send NAME --file FILE',
        )
    if path is None and text != "-":
        return str(text)
    from mam.surfaces.cli.text_input import read_prompt

    return read_prompt("-" if path is None else path)


def show(receipt: dict[str, Any]) -> str:
    """Return a receipt as one line."""
    from mam.surfaces.cli.render_sessions import clean

    line = f"{receipt['state']}: {clean(receipt['message_id'] or '')} to {clean(receipt['session'])}"
    if receipt["evidence"]:
        line += f" (proven by its {clean(receipt['evidence'])})"
    if receipt["carrier"] == "file":
        line += ", as a file"
    if receipt["added"]:
        line += f", with {clean(receipt['added'])}"
    return f"{line}: {clean(receipt['reason'])}" if receipt["reason"] else line
