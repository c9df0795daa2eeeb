"""mam attach: show a session in this terminal."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Show a session in this terminal; inside tmux the client switches to it. Ctrl-b d comes back.
With --json nothing is shown: the answer holds the command that would show it."""
EXAMPLES = """
  mam attach demo-app-creator-claude
  mam attach                  the only one that runs
  mam attach --next           the next one that waits for a person
  bind-key a run-shell "mam attach --next"      in ~/.tmux.conf"""


def add_options(parser: Parser) -> None:
    """Which one."""
    from mam.surfaces.cli.parser import add_name

    add_name(parser)
    parser.add_argument("--next", action="store_true", help="the next one that waits for a person")


def run(call: Invocation) -> int:
    """Switch to the session, or become the tmux client that shows it."""
    from mam.surfaces.cli import targets

    name = targets.one_or_none(call)
    if not call.as_json and not _has_terminal() and not os.environ.get("TMUX"):
        raise _needs_terminal()
    found = call.fleet.sessions.attach(name, next_waiting=call.options.next)
    if call.as_json:
        return call.say({key: found[key] for key in ("session", "switched", "argv")})
    if found["switched"]:
        return 0
    if not _has_terminal():
        raise _needs_terminal()
    call.quiet()
    call.close()
    _become(found["argv"], found["environ"])
    return 0


def _become(argv: list[str], environ: dict[str, str]) -> None:
    from mam.core.errors import Unavailable

    try:
        os.execvpe(argv[0], argv, environ)  # noqa: S606  (there is no shell)
    except OSError as error:
        raise Unavailable(f"tmux cannot be started: {error.strerror}") from None


def _has_terminal() -> bool:
    from mam.surfaces.cli.style import is_terminal

    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def _needs_terminal() -> Exception:
    from mam.core.errors import Usage

    return Usage("attach needs a terminal", hint="mam read prints what a session shows")
