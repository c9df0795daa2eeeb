"""mam keys: press keys in a session's pane."""

from __future__ import annotations

from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Press keys in a session's own pane, one after the other. mam reads the screen before each key. It
presses a key that could answer a dialog (Enter, Tab, Space, letters, digits) only if the screen
shows that no dialog is open. Use mam answer for dialogs and mam send for messages.

Keys: Enter Escape Tab BTab Space Backspace Up Down Left Right Home End PageUp PageDown y n 0-9
and C-a to C-z."""
EXAMPLES = """
  mam keys api Escape
  mam keys api C-u                     clear the line
  mam keys api Up Enter"""


def add_options(parser: Parser) -> None:
    """Add the options: the session and the keys."""
    parser.add_argument("words", metavar="NAME KEY", nargs="*", default=[], help="the session, and the keys")
    parser.add_argument("--session", metavar="NAME", help="the session, as an option")


def run(call: Invocation) -> int:
    """Press the keys."""
    from mam.surfaces.cli.render_sessions import clean
    from mam.surfaces.cli.targets import check_name

    arguments = list(call.options.words)
    name = call.options.session or (arguments.pop(0) if arguments else None)
    if not name:
        raise Usage("name a session", hint="mam keys NAME KEY…")
    document = call.fleet.messages.keys(check_name(call, name), *arguments)
    return call.say(document, f"pressed in {clean(document['session'])}: {' '.join(document['keys'])}")
