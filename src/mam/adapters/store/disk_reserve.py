"""The reserve of a root: a file that holds some space, so that a stop can be recorded on a full disk.

A stop deletes it. The resident makes it again once there is space.
"""

from __future__ import annotations

import os
from contextlib import suppress

# The commits of a stop write some tens of kilobytes into the log, and the registry file once.
SIZE = 256 * 1024
_NAME = "reserve"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def make(folder: str) -> bool:
    """Make the reserve in the folder of the state, if it is missing; tell whether it is there now."""
    path = os.path.join(folder, _NAME)
    if os.path.lexists(path):
        return True
    # The whole file has another name until its space is there: a crash leaves no small reserve.
    part = f"{path}.part"
    try:
        with suppress(FileNotFoundError):
            os.unlink(part)
        handle = os.open(part, _FLAGS, 0o600)
        try:
            _fill(handle)
        finally:
            os.close(handle)
        os.rename(part, path)
    except OSError:
        # There is no space now, or the folder cannot be written: what needs it says so itself.
        with suppress(OSError):
            os.unlink(part)
        return False
    return True


def _fill(handle: int) -> None:
    # Not zeros, and not `fallocate` alone: a file system that compresses would keep no space for them.
    for _ in range(SIZE // 65536):
        os.write(handle, os.urandom(65536))
    os.fsync(handle)


def spend(folder: str) -> bool:
    """Delete the reserve; tell whether there was one."""
    try:
        os.unlink(os.path.join(folder, _NAME))
    except OSError:
        return False
    return True
