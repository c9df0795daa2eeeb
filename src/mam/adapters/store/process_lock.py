"""A lock file that one process holds and that names its holder; the kernel releases it with the process.

A file can be deleted, and then another process could lock a new one of the same name. So the holder also
locks the folder of the file, for as long as it holds the file.
"""

from __future__ import annotations

import fcntl
import os
import time

from mam.adapters.system import json_text as json
from mam.adapters.system import process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FILE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# No description of a holder is longer.
_LARGEST = 1 << 16


class ProcessLock:
    """A lock file that one process can hold."""

    __slots__ = ("_folder", "_handle", "_length", "path")

    def __init__(self, path: str) -> None:
        """Store the path; open nothing yet."""
        self.path = path
        self._handle: int | None = None
        self._folder: int | None = None
        self._length = 0

    def take(self, holder: dict[str, Any]) -> bool:
        """Take the lock and write the holder into it; False if another process holds it. Raises OSError."""
        # The folder first: who is refused there has not touched the file.
        if self._folder is None and not self._take_folder():
            return False
        handle = os.open(self.path, _FILE_FLAGS, 0o600)
        while not _flock(handle, fcntl.LOCK_EX):
            # `holder` shares the lock for a moment. That must not make `take` fail, so try again then.
            if not _flock(handle, fcntl.LOCK_SH):
                os.close(handle)
                self.release()
                return False
            fcntl.flock(handle, fcntl.LOCK_UN)
        if self._handle is not None:
            os.close(self._handle)
        self._handle, self._length = handle, os.fstat(handle).st_size
        self.rewrite(holder)
        return True

    def _take_folder(self) -> bool:
        folder = os.open(os.path.dirname(self.path), _FOLDER_FLAGS)
        try:
            if not _flock(folder, fcntl.LOCK_EX):
                os.close(folder)
                return False
        except OSError:
            # A file system that locks files only.
            os.close(folder)
            return True
        self._folder = folder
        return True

    def rewrite(self, holder: dict[str, Any]) -> None:
        """Write another description of the holder, in one step: a reader never finds the file empty."""
        if self._handle is not None:
            text = json.dumps(holder).encode()
            os.pwrite(self._handle, text.ljust(self._length), 0)
            self._length = max(self._length, len(text))

    def beat(self) -> None:
        """Show that the holder works: give the file the time of the monotonic clock. Raises OSError.

        That clock knows no leaps, and stands still while the machine sleeps. Who watches the folder sees no
        write.
        """
        if self._handle is not None:
            now = time.monotonic()
            os.utime(self._handle, (now, now))

    def seconds_since_beat(self) -> float | None:
        """Return the seconds since the last beat; None if the holder has shown none yet, as an older mam."""
        try:
            seconds = time.monotonic() - os.stat(self.path, follow_symlinks=False).st_mtime
        except OSError:
            return None
        return seconds if seconds >= 0 else None

    def is_lost(self) -> bool:
        """Tell whether the file that this process holds was deleted or replaced."""
        return not (self._handle is not None and _is_at(self._handle, self.path))

    def take_again(self, holder: dict[str, Any]) -> bool:
        """Take the lock once more after its file is lost; False if another process has it.

        That happens where the whole folder was replaced, or where the other one locks only the file, as mam
        0.1 does.
        """
        if self._folder is not None and not _is_at(self._folder, os.path.dirname(self.path)):
            return False
        try:
            return self.take(holder)
        except FileNotFoundError:
            return False

    def holder(self) -> dict[str, Any] | None:
        """Return the holder, or None. It is empty in the moment in which a process has taken the lock.

        The file of a dead holder stays. Until the next one has described itself, it still names the former.
        """
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            if _flock(handle, fcntl.LOCK_SH):
                return None
            holder = _parse(os.read(handle, _LARGEST))
        finally:
            os.close(handle)
        return {} if _has_ended(holder) else holder

    def release(self) -> None:
        """Release the lock."""
        for handle in (self._handle, self._folder):
            if handle is not None:
                os.close(handle)
        self._handle = self._folder = None


def _is_at(handle: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path, follow_symlinks=False))
    except OSError:
        return False


def _flock(handle: int, how: int) -> bool:
    try:
        fcntl.flock(handle, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _has_ended(holder: dict[str, Any]) -> bool:
    """Tell whether the process of a description has ended for sure, so that another one holds the lock.

    Only a process of this boot and of this PID namespace can be judged. `Identity.from_json` takes a
    description without a namespace for one of this namespace, so the text itself is compared.
    """
    identity = process.Identity.from_json(holder)
    if identity is None or holder["boot"] != process.boot_id():
        return False
    return not process.is_alive(identity)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        holder = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}
