"""The kind `human`: a shell for a person, who reads the instructions and does the work."""

from __future__ import annotations

import os

from mam.adapters.agents.kind import Kind, Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Request

# The instructions arrive in a file and are never part of the script, so the shell cannot execute them.
_SCRIPT = 'cat -- "$MAM_TEXT_FILE"; rm -f -- "$MAM_TEXT_FILE"; unset MAM_TEXT_FILE; exec "$1" -i'
_INTRODUCTION = """\
This is a mam session for a person{role}.
Work here as you like. mam status, mam read and mam stop call this pane '{name}'.
"""


class Human(Kind):
    """Runs the user's shell, with the instructions printed above its prompt."""

    name = "human"
    ends_on_interrupt = False
    takes_prompt = False

    def program(self, command: list[str]) -> str:
        """Return a shell that every machine has; `launch` then runs the user's own."""
        return "/bin/sh"

    def launch(self, request: Request) -> Launch:
        """Print the instructions, then replace the script with the user's shell."""
        shell = request.environ.get("SHELL") or "/bin/sh"
        if not os.access(shell, os.X_OK):
            shell = "/bin/sh"
        text = _INTRODUCTION.format(
            role=f" in the role '{request.role}'" if request.role else "", name=request.name
        )
        if request.instructions:
            text += f"\nYour instructions:\n\n{request.instructions}\n"
        return Launch(["/bin/sh", "-c", _SCRIPT, "mam", shell], text=text)
