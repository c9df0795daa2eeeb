"""mam answer: show or answer the dialog that a session has open."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Without an answer: show the dialog that is open, with its fingerprint. With one: give it, and return
once the dialog is seen to be gone. `allow` takes the narrowest consent (this once), `deny` refuses,
anything else is the number or label of an option, or for a question words of your own.

With --expect nothing is pressed unless the dialog is the one with this fingerprint; it is looked at
again right before each key either way.

Exit code 1 no dialog is open, it is another one, or does not offer that; 3 pressed, not proven."""
EXAMPLES = """
  mam answer api                               what does it ask?
  mam answer api allow --expect 5f2a91c0
  mam answer api deny
  mam answer api "Green"                       an option of a question, or words of your own"""


def add_options(parser: Parser) -> None:
    """Whom, what, and to which dialog."""
    add = parser.add_argument
    add("words", metavar="NAME ANSWER", nargs="*", default=[], help="the session, and allow, deny or words")
    add("--session", metavar="NAME", help="the session, as an option")
    add("--expect", metavar="FINGERPRINT", help="only if the dialog is the one that was shown with it")


def run(call: Invocation) -> int:
    """Show it, or answer it."""
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.targets import checked

    given = list(call.options.words)
    name = call.options.session or (given.pop(0) if given else None)
    if not name:
        raise Usage("name a session", hint="mam answer NAME allow")
    if len(given) > 1:
        raise Usage(f"one word too many: '{given[1][:60]}'", hint="put quotes around the words")
    if not given:
        shown = call.fleet.messages.dialog(checked(call, name))
        return call.say(shown, *([] if call.as_json else show(shown)))
    done = call.fleet.messages.answer(checked(call, name), given[0], expect=call.options.expect)
    more = f"; its {done['next']} dialog is open now" if done["next"] else ""
    return call.say(
        done,
        f"answered the {done['dialog']} dialog of {clean(done['session'])}: {clean(done['answer'])}{more}",
    )


def show(shown: dict[str, Any]) -> list[str]:
    """Return the dialog for a person who decides."""
    from mam.core.safe_text import for_screen
    from mam.surfaces.cli.render_sessions import clean

    return [
        f"{clean(shown['session'])} shows its {shown['dialog']} dialog ({shown['fingerprint']}):",
        *(f"  {line}" for line in for_screen(shown["text"]).splitlines()),
    ]
