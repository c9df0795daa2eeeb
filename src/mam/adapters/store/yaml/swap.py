"""Renames that destroy nothing.

A plain rename destroys what it replaces, even what somebody put there a moment before. After a swap
the old file is in our hands and can be looked at: an edit that came in between is put back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_HERE = -100  # AT_FDCWD
_IS_MAC = sys.platform == "darwin"
_SWAP = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
_ONLY_NEW = 4 if _IS_MAC else 1  # RENAME_EXCL, RENAME_NOREPLACE
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)


def swap(one: str, two: str) -> bool:
    """Exchange two files; False where the system or the file system cannot. Raises OSError for the rest."""
    return _rename(one, two, _SWAP)


def put_new(one: str, two: str) -> bool:
    """Rename a file to a name that nobody has; False where that is not offered. Raises FileExistsError."""
    return _rename(one, two, _ONLY_NEW)


def _rename(one: str, two: str, how: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(two)
    try:
        if _IS_MAC:
            failed = libc.renamex_np(first, second, how)
        else:
            failed = libc.renameat2(_HERE, first, _HERE, second, how)
    except AttributeError:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), two)
