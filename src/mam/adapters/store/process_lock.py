"""A lock file that one process holds and that names its holder; the kernel releases it with the process."""

from __future__ import annotations

import fcntl
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ProcessLock:
    """A lock file that one process can hold."""

    __slots__ = ("_handle", "path")

    def __init__(self, path: str) -> None:
        """Store the path; open nothing yet."""
        self.path = path
        self._handle: int | None = None

    def take(self, holder: dict[str, Any]) -> bool:
        """Take the lock and write the holder into it; False if another process holds it. Raises OSError."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        while not _flock(handle, fcntl.LOCK_EX):
            # `holder` shares the lock for a moment. That must not make `take` fail, so try again then.
            if not _flock(handle, fcntl.LOCK_SH):
                os.close(handle)
                return False
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(holder).encode())
        self._handle = handle
        return True

    def holder(self) -> dict[str, Any] | None:
        """Return the holder, or None. The file of a dead holder stays, but its content does not count."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return None if _flock(handle, fcntl.LOCK_SH) else _parse(os.read(handle, 4096))
        finally:
            os.close(handle)

    def release(self) -> None:
        """Release the lock."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _flock(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parse(text: bytes) -> dict[str, Any]:
    try:
        holder = json.loads(text)
    except ValueError:
        return {}
    return holder if isinstance(holder, dict) else {}
