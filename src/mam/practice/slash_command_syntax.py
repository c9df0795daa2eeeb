"""Parses slash commands, and holds their help text."""

from __future__ import annotations

from .requested_turns import DRILLS

HELP = """\
Practice agent: type a message and press Enter; Alt+Enter or Ctrl-J begins a new line.
  /help            this list
  /clear           begin a new conversation
  /rename NAME     put a name on the input box
  /color NAME      colour the edge of the input box
  /exit, /quit     leave (also Ctrl-D, or Ctrl-C twice)
Drills, to see how others cope with an agent that is:
  /slow SECONDS    busy for a while
  /hang            busy until Escape
  /ask TOOL ARGS…  asking for a permission, e.g. /ask touch foo
  /question        asking you to choose
  /error           failing
  /retry           retrying
  /limit           out of its allowance
  /flood KB        printing a lot
  /crash [N]       dying with exit code N"""


def parse_command(text: str) -> tuple[str, str] | None:
    """Return name and arguments of a slash command; None for a message.

    A message may begin with a path, whose first word has a second slash.
    """
    parts = text.split(None, 1)
    if not text.startswith("/") or not parts:
        return None
    name = parts[0][1:]
    if not name[:1].isalpha() or "/" in name:
        return None
    return name, parts[1].rstrip() if len(parts) > 1 else ""


def command_error(name: str, arguments: str) -> str:
    """Return the error of a command that is no valid drill; an empty string for a valid drill."""
    if name not in DRILLS:
        return f"Unknown command: /{name}"
    drill = DRILLS[name]
    return "" if drill.accepts(arguments) else f"Usage: {drill.usage}"
