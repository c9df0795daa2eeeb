"""One holder at a time, known by its process: the kernel lets go of it when the holder dies."""

from __future__ import annotations

import fcntl
import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ProcessLock:
    """A file that one process holds."""

    __slots__ = ("_handle", "path")

    def __init__(self, path: str) -> None:
        """Nothing is opened before it is asked for."""
        self.path = path
        self._handle: int | None = None

    def take(self, who: dict[str, Any]) -> bool:
        """Hold it and say who does; False if somebody else does. Raises OSError."""
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        while not _flock(handle, fcntl.LOCK_EX):
            # Who only asks for the holder shares it for a moment, and keeps nobody from holding it.
            if not _flock(handle, fcntl.LOCK_SH):
                os.close(handle)
                return False
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.ftruncate(handle, 0)
        os.write(handle, json.dumps(who).encode())
        self._handle = handle
        return True

    def holder(self) -> dict[str, Any] | None:
        """Return who holds it; None if nobody does. The file of a dead holder stays and says nothing."""
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            return None if _flock(handle, fcntl.LOCK_SH) else _parse(os.read(handle, 4096))
        finally:
            os.close(handle)

    def release(self) -> None:
        """Let go."""
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
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
