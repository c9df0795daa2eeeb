"""mam keys: press keys in a session's pane."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Press keys in a session's own pane, one after the other, each after a look. A key that could answer
a dialog (Enter, Tab, Space, letters, digits) is pressed only where mam sees that none is open; use
mam answer for dialogs and mam send for words.

Keys: Enter Escape Tab BTab Space Backspace Up Down Left Right Home End PageUp PageDown y n 0-9
and C-a to C-z."""
EXAMPLES = """
  mam keys api Escape
  mam keys api C-u                     clear the line
  mam keys api Up Enter"""


def add_options(parser: Parser) -> None:
    """Where, and which."""
    parser.add_argument("words", metavar="NAME KEY", nargs="*", default=[], help="the session, and the keys")
    parser.add_argument("--session", metavar="NAME", help="the session, as an option")


def run(call: Invocation) -> int:
    """Press them."""
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.targets import checked

    given = list(call.options.words)
    name = call.options.session or (given.pop(0) if given else None)
    if not name:
        raise Usage("name a session", hint="mam keys NAME KEY…")
    done = call.fleet.messages.keys(checked(call, name), *given)
    return call.say(done, f"pressed in {clean(done['session'])}: {' '.join(done['keys'])}")
