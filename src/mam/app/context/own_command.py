"""The words that start this very mam: for a process of ours, and for an agent that types them."""

from __future__ import annotations

import os
import sys

from mam.adapters.system import program_lookup

NAME = "mam"


def argv(*words: str, safe_path: bool = True) -> list[str]:
    """Return what starts this very mam with these arguments, in any directory and with any PATH.

    `safe_path` keeps Python from importing what lies in the directory that it is started in.
    """
    return [sys.executable, *(["-P"] if safe_path else []), "-m", NAME, *words]


def typed(path: str) -> list[str]:
    """Return what an agent types for this very mam: the name where PATH means it, else the whole path."""
    ours = os.path.join(os.path.dirname(sys.executable), NAME)
    program = program_lookup.which(NAME, path)
    if program and os.path.realpath(program) == os.path.realpath(ours):
        return [NAME]
    return [ours] if os.access(ours, os.X_OK) else argv()


def named(path: str) -> list[str]:
    """Return what an agent types for any mam: the name where PATH has one, else this very mam."""
    return [NAME] if program_lookup.which(NAME, path) else argv(safe_path=False)
