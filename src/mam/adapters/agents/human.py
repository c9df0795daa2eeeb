"""A person at a shell: the instructions are printed, the person does the work."""

from __future__ import annotations

import os

from mam.adapters.agents.kind import Kind, Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Request

# A caller's words arrive in a file and are never part of the script.
_SCRIPT = 'cat -- "$MAM_TEXT_FILE"; rm -f -- "$MAM_TEXT_FILE"; unset MAM_TEXT_FILE; exec "$1" -i'
_WELCOME = """\
This is a mam session for a person{role}.
Work here as you like; mam status, mam read and mam stop know this pane as '{name}'.
"""


class Human(Kind):
    """The user's own shell with the task printed above the prompt."""

    name = "human"
    ends_on_interrupt = False
    takes_prompt = False

    def program(self, command: list[str]) -> str:
        """Any shell will do; the user's own is taken at launch."""
        return "/bin/sh"

    def launch(self, request: Request) -> Launch:
        """Print the instructions, then become the shell."""
        shell = request.environ.get("SHELL") or "/bin/sh"
        if not os.access(shell, os.X_OK):
            shell = "/bin/sh"
        text = _WELCOME.format(
            role=f" in the role '{request.role}'" if request.role else "", name=request.name
        )
        if request.instructions:
            text += f"\nWhat is asked of you:\n\n{request.instructions}\n"
        return Launch(["/bin/sh", "-c", _SCRIPT, "mam", shell], text=text)
