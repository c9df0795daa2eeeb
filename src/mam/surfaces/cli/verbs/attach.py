"""mam attach: show a session in this terminal."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.surfaces.cli.invocation import Invocation
    from mam.surfaces.cli.parser import Parser

DESCRIPTION = """\
Show a session in this terminal. Ctrl-b d leaves it again. Inside tmux the client switches to
the session, and Ctrl-b L switches back.
With --json, print the command that would show the session."""
EXAMPLES = """
  mam attach demo-app-creator-claude
  mam attach                  the only running session
  mam attach --next           the next session that waits for a person
  bind-key a run-shell "mam attach --next"      in ~/.tmux.conf"""


def add_options(parser: Parser) -> None:
    """Add the options: the session, or the next waiting one."""
    from mam.surfaces.cli.parser import add_name

    add_name(parser)
    parser.add_argument("--next", action="store_true", help="the next session that waits for a person")


def run(call: Invocation) -> int:
    """Switch to the session, or replace this process by a tmux client that shows it."""
    from mam.surfaces.cli import targets

    name = targets.optional_session(call)
    if not call.as_json and not _has_terminal() and not os.environ.get("TMUX"):
        raise _needs_terminal()
    target = call.fleet.sessions.attach(name, next_waiting=call.options.next)
    if call.as_json:
        return call.say({key: target[key] for key in ("session", "switched", "argv")})
    if target["switched"]:
        return 0
    if not _has_terminal():
        raise _needs_terminal()
    call.clear_progress()
    call.close()
    _exec(target["argv"], target["environ"])
    return 0


def _exec(argv: list[str], environ: dict[str, str]) -> None:
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
