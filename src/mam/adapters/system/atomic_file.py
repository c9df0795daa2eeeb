"""Files that are there whole or not at all: each is written beside its place and renamed into it.

A file that could not be written is removed. A link in the place of a file is replaced and never followed.
"""

from __future__ import annotations

import os

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def replace(
    path: str, content: bytes, mode: int = 0o600, *, flushed: bool = False, beside: str | None = None
) -> None:
    """Put content in the place of a file. Raises OSError, and then nothing has changed.

    `flushed` sends the content to the disk before the rename. `beside` names the fresh file of a caller who
    writes alone: a dead writer's is removed. Without it the fresh file has a name that nobody else chooses.
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
    """Write a file under a name that nobody has, and return its facts; nothing of it stays if that fails.

    The umask takes away from `mode`. `modified_ns` is the file's time. Raises FileExistsError for any
    name that is taken, also by a link that leads nowhere.
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
    """Remove a file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return


def flush_folder(folder: str) -> None:
    """Send the names in a folder to the disk: only then does a rename outlive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _clean_up(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return  # the caller is told of the failure that came first
