"""The command that an agent's hooks run: a few lines of sh that drop the payload into the spool."""

from __future__ import annotations

import os
import shlex

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hook.sh")


def command(spool: str) -> str:
    """Return the hook as a shell command; exec keeps the agent the parent of the script."""
    return f"exec /bin/sh {shlex.quote(SCRIPT)} {shlex.quote(spool)}"


def as_argv(hook: str) -> list[str]:
    """Return such a command as words, for a program that runs it without a shell."""
    return shlex.split(hook)[1:]
