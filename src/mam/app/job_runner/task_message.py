"""Makes the message that gives an agent its task: how to report on the job, and then the task."""

from __future__ import annotations

import shlex

from mam.app.context import own_command
from mam.core import job_rules as rules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context


def report_command(context: Context, job_id: str, attempt: int) -> str:
    """Return the start of each command that reports on a job; it works in any shell and any directory."""
    if context.paths.state.endswith("/.mam"):
        root_options = ["--workspace", context.paths.root]
    else:
        root_options = ["--registry", context.paths.yaml]
    program = own_command.exact_command(context.environ.get("PATH", ""))
    return shlex.join([*program, "job", "event", *root_options, "--job", job_id, "--attempt", str(attempt)])


def message_of(context: Context, job_id: str, attempt: int, task: str) -> str:
    """Return the whole message for an agent: the instructions about its job, and then its task."""
    return rules.prompt(rules.instructions(job_id, report_command(context, job_id, attempt)), task)
