"""What a slash command is, and what the list of them says."""

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

    A path at the beginning of a message has a second slash in its first word.
    """
    words = text.split(None, 1)
    if not text.startswith("/") or not words:
        return None
    name = words[0][1:]
    if not name[:1].isalpha() or "/" in name:
        return None
    return name, words[1].rstrip() if len(words) > 1 else ""


def complaint(name: str, rest: str) -> str:
    """Return why a command that is not the agent's own cannot start, nothing if it is a drill that can."""
    if name not in DRILLS:
        return f"Unknown command: /{name}"
    drill = DRILLS[name]
    return "" if drill.will_do(rest) else f"Usage: {drill.usage}"
