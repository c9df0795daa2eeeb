"""The tools the agent pretends to use.

Two are real: `touch NAME` creates a file, as proof that it ran, and `… job event …` reports on a job.
"""

from __future__ import annotations

import os

_TESTING = frozenset({"test", "tests", "testing", "tested"})
_BUILDING = frozenset({"build", "builds", "building", "compile", "compiling"})
_RUNNING = frozenset({"run", "runs", "running", "execute"})
_CREATING = frozenset({"create", "creates", "creating"})
_PUNCTUATION = ".,;:!?()[]{}\"'“”‘’"


def tool_for(prompt: str) -> str:
    """Return the command that fits a prompt; an empty string if none does.

    A command in backticks is used unchanged.
    """
    words = {word.strip(_PUNCTUATION) for word in prompt.lower().split()}
    if not words & (_TESTING | _BUILDING | _RUNNING | _CREATING):
        return ""
    quoted = prompt.split("`")
    if len(quoted) >= 3 and quoted[1].strip() and "\n" not in quoted[1]:
        return quoted[1].strip()
    if words & _CREATING:
        return f"touch {_file_name(prompt)}"
    if words & _TESTING:
        return "make test"
    return "make build" if words & _BUILDING else "make run"


def run_tool(command: str) -> str:
    """Run the command if it is one of the real ones; return the line to show."""
    if " job event " in command:
        from .job_turn import report

        return report(command)
    words = command.split()
    if len(words) != 2 or words[0] != "touch":
        return "ok"
    name = words[1]
    if "/" in name or "\0" in name or name.startswith("-") or name in (".", ".."):
        return "Error: only a plain file name can be created"
    try:
        os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))
        os.utime(name)
    except (OSError, ValueError) as error:
        return f"Error: {getattr(error, 'strerror', None) or error}"
    return "ok"


def _file_name(prompt: str) -> str:
    """Return the first word that looks like a file name."""
    for word in prompt.split():
        name = word.strip(_PUNCTUATION + "`")
        stem, dot, ending = name.rpartition(".")
        if stem and dot and ending.isalnum() and "/" not in name:
            return name
    return "notes.txt"
