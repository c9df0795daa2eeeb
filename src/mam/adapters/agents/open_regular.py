"""Opening files that somebody else writes: a pipe or a device in their place must not hold us up."""

from __future__ import annotations

import errno
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO


def open_plain(path: str) -> BinaryIO:
    """Open a regular file to read it; raises OSError for anything else, and never waits."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return os.fdopen(handle, "rb")


def read_start(path: str, most: int) -> bytes:
    """Return the first bytes of a regular file; nothing where it cannot be read."""
    try:
        with open_plain(path) as file:
            return file.read(most)
    except OSError:
        return b""


def is_plain(path: str) -> bool:
    """Tell whether a path leads to a regular file, for what opens files by itself."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
