"""The command that the hooks of an agent run: a shell script that writes the payload into the spool."""

from __future__ import annotations

import os
import shlex

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook.sh")


def command(spool: str) -> str:
    """Return the hook as a shell command; with `exec` the parent of the script is the agent, not a shell."""
    return f"exec /bin/sh {shlex.quote(SCRIPT)} {shlex.quote(spool)}"


def as_argv(hook: str) -> list[str]:
    """Return a hook command as argv, for a program that runs it without a shell."""
    return shlex.split(hook)[1:]
