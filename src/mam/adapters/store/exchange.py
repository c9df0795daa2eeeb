"""Swapping two files in one step.

A rename destroys what it replaces, even what somebody put there a moment before. After a swap the
old file is in our hands and can be looked at: an edit that came in between is put back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_HERE = -100  # AT_FDCWD
_SWAP = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)


def swap(one: str, two: str) -> bool:
    """Exchange two files; False where the system or the file system cannot. Raises OSError for the rest."""
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(two)
    try:
        if sys.platform == "darwin":
            failed = libc.renamex_np(first, second, _SWAP)
        else:
            failed = libc.renameat2(_HERE, first, _HERE, second, _SWAP)
    except AttributeError:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), two)
