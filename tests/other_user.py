"""A second user: work in a child process without the rights of root, and files of somebody else."""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest

NOBODY = os.getuid() or 65534
# Neither the user that runs the tests nor NOBODY.
STRANGER = 54321

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")


def as_nobody(work):
    """Return the result of work in a child process without the rights of root."""
    read, write = os.pipe()
    child = os.fork()  # noqa: TID251  (a process cannot get its rights back)
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            answer = repr(work())
        except BaseException as error:
            answer = repr(f"{type(error).__name__}: {error}")
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as answer:
        output = answer.read()
    os.waitpid(child, 0)
    return ast.literal_eval(output)


def give(place: Path, user: int = STRANGER) -> None:
    """Give a file, or a folder with everything in it, to another user."""
    for path in (place, *place.rglob("*")) if place.is_dir() else (place,):
        os.chown(path, user, user, follow_symlinks=False)
