"""Writes files that exist complete or not at all: each is written under another name and then renamed.

A file that could not be written is removed. A symbolic link at the path is replaced and never followed.
"""

from __future__ import annotations

import os

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace(
    path: str, content: bytes, mode: int = 0o600, *, flushed: bool = False, beside: str | None = None
) -> None:
    """Replace the content of a file. Raises OSError, and then nothing has changed.

    `flushed` sends the content to the disk before the rename. `beside` names the temporary file; a caller
    may give it only if it is the one writer, because a file that a dead writer left there is removed.
    Without `beside` the temporary file has a random name.
    """
    if beside is None:
        fresh = f"{path}.{os.urandom(4).hex()}"
    else:
        fresh = beside
        discard(fresh)
    create(fresh, content, mode, flushed=flushed)
    try:
        os.rename(fresh, path)
    except BaseException:
        _clean_up(fresh)
        raise


def create(
    path: str,
    content: bytes,
    mode: int = 0o600,
    *,
    flushed: bool = False,
    modified_ns: int | None = None,
) -> os.stat_result:
    """Write a new file and return its stat result; if the writing fails, the file is removed.

    The umask reduces `mode`. `modified_ns` becomes the file's modification time. Raises FileExistsError
    if the name exists, also as a symbolic link without a target.
    """
    handle = os.open(path, _FLAGS, mode)
    try:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(handle, rest) :]
            if modified_ns is not None:
                os.utime(handle, ns=(modified_ns, modified_ns))
            if flushed:
                os.fsync(handle)
            return os.fstat(handle)
        finally:
            os.close(handle)
    except BaseException:
        _clean_up(path)
        raise


def discard(path: str) -> None:
    """Remove a file if it exists."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def make_private_folder(path: str) -> None:
    """Make a folder, and the missing ones above it, private to the user; one that exists stays as it is."""
    parent = os.path.dirname(path)
    if parent != path and not os.path.isdir(parent):
        make_private_folder(parent)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def flush_folder(folder: str) -> None:
    """Send the names in a folder to the disk, so that a rename survives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _clean_up(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # the caller gets the failure that came first
