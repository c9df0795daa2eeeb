"""Opening files that agents write, without blocking where a pipe or a device is in their place."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


def open_regular_file(path: str) -> BinaryIO:
    """Open a regular file for reading. Raises OSError for anything else, and never blocks."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(handle, "rb")


def read_start(path: str, most: int) -> bytes:
    """Return the first bytes of a regular file; empty if it cannot be read."""
    try:
        with open_regular_file(path) as file:
            return file.read(most)
    except OSError:
        return b""


def is_regular_file(path: str) -> bool:
    """Tell whether a path leads to a regular file, for libraries that open files themselves."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
