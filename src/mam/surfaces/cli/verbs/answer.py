"""mam answer: show or answer the open dialog of a session."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Without an answer: show the open dialog and its fingerprint. With an answer: give it, and return
when the dialog has closed. `allow` chooses the narrowest consent (only this time), `deny` refuses.
Any other answer is the number or the label of an option, or your own text for a question.

With --expect, mam presses keys only if the dialog has this fingerprint. In any case mam checks
the dialog again before each key.

Exit code 1: no dialog is open, another dialog is open, or it has no such option. 3: mam pressed
the keys, and cannot prove that the dialog closed."""
EXAMPLES = """
  mam answer api                               show the dialog
  mam answer api allow --expect 5f2a91c0
  mam answer api deny
  mam answer api "Green"                       an option of a question, or your own text"""


def add_options(parser: Parser) -> None:
    """Add the options: the session, the answer and the fingerprint."""
    add = parser.add_argument
    add("words", metavar="NAME ANSWER", nargs="*", default=[], help="the session, and allow, deny or a text")
    add("--session", metavar="NAME", help="the session, as an option")
    add("--expect", metavar="FINGERPRINT", help="answer only the dialog whose fingerprint begins so")


def run(call: Invocation) -> int:
    """Show the dialog, or answer it."""
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.targets import check_name

    arguments = list(call.options.words)
    name = call.options.session or (arguments.pop(0) if arguments else None)
    if not name:
        raise Usage("name a session", hint="mam answer NAME allow")
    if len(arguments) > 1:
        raise Usage(f"unexpected argument: '{arguments[1][:60]}'", hint="put quotes around the text")
    if not arguments:
        dialog = call.fleet.messages.dialog(check_name(call, name))
        return call.say(dialog, *([] if call.as_json else show(dialog)))
    receipt = call.fleet.messages.answer(check_name(call, name), arguments[0], expect=call.options.expect)
    more = f"; its {receipt['next']} dialog is open now" if receipt["next"] else ""
    target = f"the {receipt['dialog']} dialog of {clean(receipt['session'])}"
    return call.say(receipt, f"answered {target}: {clean(receipt['answer'])}{more}")


def how_to_answer(name: str) -> str:
    """Return how a person answers the dialog of a session."""
    from mam.surfaces.cli.render_sessions import clean

    return f"mam answer {clean(name)} shows what it asks; mam answer {clean(name)} allow|deny"


def show(dialog: dict[str, Any]) -> list[str]:
    """Return the dialog as text for a person."""
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    # As much of the fingerprint as --expect needs.
    return [
        f"{clean(dialog['session'])} shows a {dialog['dialog']} dialog ({dialog['fingerprint'][:8]}):",
        *(f"  {line}" for line in for_screen(dialog["text"]).splitlines()),
    ]
