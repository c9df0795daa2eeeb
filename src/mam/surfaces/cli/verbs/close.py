"""mam close: end a member of a team."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
End a member of a team with its own exit word, remove its pane and put the window in order.

Refused until its four boxes are ticked: report received, task done, session id saved, ready to
close; mam report ticks them. --force closes without them. Never the pane that this command runs
in, never a master's."""
EXAMPLES = """
  mam close dev
  mam close dev-2 --force"""


def add_options(parser: Parser) -> None:
    """Whom, and whether without its boxes."""
    from mam.surfaces.cli.parser import add_name

    add_name(parser)
    parser.add_argument("--force", action="store_true", help="without its boxes; its tasks wait again")


def run(call: Invocation) -> int:
    """Close it."""
    from mam.core.errors import Usage
    from mam.surfaces.cli.render_sessions import clean, line

    name = call.options.session or call.options.name
    if not name:
        raise Usage("name a session", hint="mam close NAME; mam team list shows them")
    done = call.fleet.teams.close(name, force=call.options.force)
    note = f" ({clean(done['note'])})" if done["note"] else ""
    return call.say(
        done, f"{'closed' if done['changed'] else 'nothing to do'}: {line(done['session'])}{note}"
    )
