"""The kind `exec`: a command that runs once, for one job. mam types nothing to it and reads no screen."""

from __future__ import annotations

from mam.adapters.agents.kind import Kind, Launch
from mam.core.errors import Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Request


class Exec(Kind):
    """Runs what a job names. The first word of the command is the kind, the others are the program's."""

    name = "exec"
    takes_prompt = False
    runs_command_of_job = True
    works_while_alive = True

    def program(self, command: list[str]) -> str:
        """Return the program of the job."""
        return command[1] if len(command) > 1 else ""

    def launch(self, request: Request) -> Launch:
        """Run the runner that the job prepared, with the command as its arguments."""
        if not request.runner:
            raise Usage(
                "a session of the kind exec runs the command of one job, once",
                hint="submit a job: mam job submit --exec … -- PROGRAM ARG…",
            )
        return Launch(request.runner)
