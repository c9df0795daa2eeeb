"""Work that comes with a job: the agent reports on it with the very commands that it was given.

What it is asked decides how it goes: `forget to report` ends the turn in silence, `never report` also the one
after a reminder, `please fail` ends in an error,
a review passes, unless the task that it is about says `pass in round N` and it is an earlier one. Loaded
only when such work comes.
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
    """A job as its message tells it: how to report, and what to do."""

    def __init__(self, command: str, task: str) -> None:
        self.command = command
        self.task = task

    @property
    def is_forgotten(self) -> bool:
        """Tell whether the agent is to forget that somebody waits for its word."""
        return "forget to report" in self.task or _NEVER in self.task

    def started(self) -> str:
        """Return the command that says that the work has begun."""
        return f"{self.command} --event started"

    def ended(self) -> str:
        """Return the command that says how it ended."""
        if "please fail" in self.task:
            return self._say("error", "practice error")
        if not self.task.startswith(_REVIEW):
            return self._say("completed", "done as asked")
        now, wanted = _ROUND.search(self.task), _LATEST.search(self.task)
        is_passed = wanted is None or now is None or int(now[1]) >= int(wanted[1])
        return self._say("completed", "PASS: nothing to add" if is_passed else "FAIL: one more round, please")

    def _say(self, event: str, detail: str) -> str:
        return f"{self.command} --event {event} --detail {shlex.quote(detail)}"


def job_of(prompt: str, earlier: Iterable[str] = ()) -> Job | None:
    """Return the job that a prompt gives, or reminds of; None for any other prompt."""
    found, at = _COMMAND.search(prompt), prompt.find(_TASK)
    if found and at >= 0:
        return Job(found[1], prompt[at + len(_TASK) :])
    reminder = _NUDGE.search(prompt)
    if not reminder or "is still open" not in prompt:
        return None
    return Job(reminder[1], _NEVER if any(_NEVER in one for one in earlier) else "")


def message_in(prompt: str) -> str:
    """Return what a prompt says: its own words, or those of the file that it points to."""
    found = _POINTER.match(prompt.strip())
    if not found:
        return prompt
    try:
        with open(found[1], encoding="utf-8") as file:
            return file.read()
    except (OSError, ValueError):
        return prompt


def report(command: str) -> str:
    """Run a command that reports on a job, and nothing else; return the line to show."""
    if not _REPORT.match(command):
        return "Error: only an event of a job can be reported"
    try:
        done = subprocess.run(
            shlex.split(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        return f"Error: {error}"
    said = (done.stdout or done.stderr).decode("utf-8", "replace").strip().splitlines()
    return said[0][:200] if said else f"exit {done.returncode}"
