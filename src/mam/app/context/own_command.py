"""The command that starts this very mam, for processes that mam starts and for agents that type it."""

from __future__ import annotations

import os
import sys

from mam.adapters.system import program_lookup

NAME = "mam"


def argv(*arguments: str, safe_path: bool = True) -> list[str]:
    """Return the command that starts this very mam with these arguments, in any directory and with any PATH.

    `safe_path` keeps Python from importing modules of the directory in which it is started.
    """
    return [sys.executable, *(["-P"] if safe_path else []), "-m", NAME, *arguments]


def exact_command(path: str) -> list[str]:
    """Return what an agent types for this very mam: its name if PATH finds this mam by it, else its path."""
    installed = os.path.join(os.path.dirname(sys.executable), NAME)
    program = program_lookup.which(NAME, path)
    if program and os.path.realpath(program) == os.path.realpath(installed):
        return [NAME]
    return [installed] if os.access(installed, os.X_OK) else argv()


def any_command(path: str) -> list[str]:
    """Return what an agent types for any mam: the name if PATH finds some mam, else this very mam."""
    return [NAME] if program_lookup.which(NAME, path) else argv(safe_path=False)


def is_own(command: list[str]) -> bool:
    """Tell whether a command line is that of some mam, however it was started."""
    words = [word for word in command[:4] if word not in ("-P", "-I", "-S")]
    return words[1:3] == ["-m", NAME] or any(os.path.basename(word) == NAME for word in words[:2])
