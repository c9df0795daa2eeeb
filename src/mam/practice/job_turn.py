"""Works on a job: the agent reports with the commands that the job's message contains.

The text of the task decides the outcome. `forget to report` ends the turn without a report, and `never
report` also the turn after a reminder. `please fail` reports an error. A review passes, unless the reviewed
task says `pass in round N` and this is an earlier round.
"""

from __future__ import annotations

import re
import shlex
import subprocess

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_REPORT = re.compile(r"\S.* job event .*--job [0-9a-f]{8} --attempt \d+ --event [a-z_]+( |\Z)")
_SECONDS = 60.0
_NEVER = "never report"
_COMMAND = re.compile(r"^  (\S.* job event .*--job [0-9a-f]{8} --attempt \d+) --event started$", re.MULTILINE)
_NUDGE = re.compile(r"`(\S[^`]* job event [^`]*--job [0-9a-f]{8} --attempt \d+) --event completed")
_TASK = "\nTask:\n"
_POINTER = re.compile(r"Read the file (\S+): it holds message \S+ for you\. Do what it says\.\Z")
_ROUND, _LATEST = re.compile(r"\(round (\d+)\)"), re.compile(r"pass in round (\d+)")
_REVIEW = "Review the work that another agent"


class Job:
    """A job as its message describes it: the command that reports, and the task."""

    def __init__(self, command: str, task: str) -> None:
        self.command = command
        self.task = task

    @property
    def is_unreported(self) -> bool:
        """Tell whether the task says that the agent must not report."""
        return "forget to report" in self.task or _NEVER in self.task

    def started(self) -> str:
        """Return the command that reports the start of the work."""
        return f"{self.command} --event started"

    def ended(self) -> str:
        """Return the command that reports the end of the work."""
        if "please fail" in self.task:
            return self._report_command("error", "practice error")
        if not self.task.startswith(_REVIEW):
            return self._report_command("completed", "done as asked")
        current_round, passing_round = _ROUND.search(self.task), _LATEST.search(self.task)
        is_passed = (
            passing_round is None or current_round is None or int(current_round[1]) >= int(passing_round[1])
        )
        return self._report_command(
            "completed", "PASS: nothing to add" if is_passed else "FAIL: one more round, please"
        )

    def _report_command(self, event: str, detail: str) -> str:
        return f"{self.command} --event {event} --detail {shlex.quote(detail)}"


def job_of(prompt: str, earlier: Iterable[str] = ()) -> Job | None:
    """Return the job of a prompt that gives one or reminds of one; None for any other prompt."""
    command, at = _COMMAND.search(prompt), prompt.find(_TASK)
    if command and at >= 0:
        return Job(command[1], prompt[at + len(_TASK) :])
    reminder = _NUDGE.search(prompt)
    if not reminder or "is still open" not in prompt:
        return None
    return Job(reminder[1], _NEVER if any(_NEVER in text for text in earlier) else "")


def message_in(prompt: str) -> str:
    """Return the text of a prompt, or of the file that the prompt points to."""
    pointer = _POINTER.match(prompt.strip())
    if not pointer:
        return prompt
    try:
        with open(pointer[1], encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return prompt


def report(command: str) -> str:
    """Run a command that reports on a job; refuse any other; return the line to show."""
    if not _REPORT.match(command):
        return "Error: the command does not report an event of a job"
    try:
        result = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"Error: {error}"
    lines = (result.stdout or result.stderr).decode("utf-8", "replace").strip().splitlines()
    return lines[0][:200] if lines else f"exit {result.returncode}"
