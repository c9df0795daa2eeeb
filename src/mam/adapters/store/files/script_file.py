"""The private file from which a copied script runs: in a folder of its own that other users cannot read.

Shells read a script while they run it. So a script never runs from a place where an agent edits files.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from mam.adapters.store import database
from mam.adapters.system import atomic_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_FOLDER = "scripts"
# The kernel reads no more of the first line.
_LONGEST_LINE = 256


@contextmanager
def written(state: str, job: tuple[str, str], name: str, content: bytes) -> Iterator[str]:
    """Write a script below the folder of the user state and yield its path; remove it afterwards.

    `job` is the root's id and the job's, and has one script. What a dead process left there is replaced.
    """
    folder = _folder(state, job)
    path = os.path.join(folder, name)
    try:
        with database.errors(folder):
            discard(state, job)
            os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
            os.mkdir(folder, mode=0o700)
            atomic_file.create(path, content, 0o700)
        yield path
    finally:
        discard(state, job)


def discard(state: str, job: tuple[str, str]) -> None:
    """Remove the file of a job's script, if there is one."""
    # Most jobs have no script, so their reports do not pay for this import.
    import shutil

    shutil.rmtree(_folder(state, job), ignore_errors=True)


def interpreter(content: bytes) -> list[str]:
    """Return the interpreter that the first line of a script names, as the kernel reads it; none without.

    Running the interpreter instead of the file also works where the user state may hold no programs, and
    while another thread of this process has just started a child that still has the file open.
    """
    if not content.startswith(b"#!"):
        return []
    words = os.fsdecode(content[2:_LONGEST_LINE].split(b"\n", 1)[0]).strip(" \t").split(None, 1)
    return [word.strip(" \t") for word in words]


def _folder(state: str, job: tuple[str, str]) -> str:
    return os.path.join(state, _FOLDER, "-".join(job))
