"""Renames that destroy no file.

A plain rename destroys the file that it replaces, even if an editor wrote it a moment before. After a swap
the old file still exists, and mam can check it and put an edit back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

_CURRENT_FOLDER = -100  # AT_FDCWD
_IS_MAC = sys.platform == "darwin"
_SWAP = 2  # RENAME_EXCHANGE on Linux, RENAME_SWAP on macOS
_ONLY_NEW = 4 if _IS_MAC else 1  # RENAME_EXCL, RENAME_NOREPLACE
_CANNOT = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)


def swap(path: str, other: str) -> bool:
    """Exchange two files; False if this file system cannot. Raises OSError for other failures."""
    return _rename(path, other, _SWAP)


def put_new(path: str, other: str) -> bool:
    """Rename a file to a new name; False if the system cannot. Raises FileExistsError if it exists."""
    return _rename(path, other, _ONLY_NEW)


def _rename(path: str, other: str, how: int) -> bool:
    libc = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(path), os.fsencode(other)
    try:
        if _IS_MAC:
            failed = libc.renamex_np(first, second, how)
        else:
            failed = libc.renameat2(_CURRENT_FOLDER, first, _CURRENT_FOLDER, second, how)
    except AttributeError:
        return False
    if not failed:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), other)
