"""A lock on a file with a queue: the kernel hands it on in the order of arrival.

Who asks again and again instead can miss a lock for as long as there are others, and the asking itself
takes the time that the holder needs: of 100 writers on a busy machine 28 gave up after ten seconds.
Here a writer waits for as long as the queue moves, and gives up only when it stands still.
"""

from __future__ import annotations

import _thread
import fcntl
import os
from contextlib import contextmanager
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_LONGEST_STEP = 0.5


class StandsStill(Exception):
    """The queue did not move for too long: its holder lives, and does not let go."""


@contextmanager
def hold(path: str, progress: Callable[[], object], patience: float) -> Iterator[None]:
    """Hold the lock file; wait in line for it while `progress` changes, at most `patience` seconds apart.

    The kernel lets go of it when the holder dies. Raises StandsStill, or OSError where there is no such file.
    """
    handle = os.open(path, _FLAGS, 0o600)
    if not _is_free(handle):
        _Waiter(handle).wait(progress, patience)
    try:
        yield
    finally:
        os.close(handle)


def file_progress(path: str) -> tuple[int, int] | None:
    """Return what changes whenever a file is written; None where there is none."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    return facts.st_mtime_ns, facts.st_size


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Waiter:
    """A place in the kernel's queue. Only a call that blocks has one, so a thread makes it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._guard = _thread.allocate_lock()
        self._has_turn = _thread.allocate_lock()
        self._has_turn.acquire()
        self._is_over = False

    def wait(self, progress: Callable[[], object], patience: float) -> None:
        """Return once the lock is held. Whatever ends the waiting early, nobody holds it afterwards."""
        _thread.start_new_thread(self._take, ())
        try:
            self._watch(progress, patience)
        except BaseException:
            with self._guard:
                self._is_over = True
                if self._has_turn.acquire(blocking=False):
                    os.close(self._handle)
            raise

    def _watch(self, progress: Callable[[], object], patience: float) -> None:
        known, since = progress(), monotonic()
        while not self._has_turn.acquire(timeout=min(patience, _LONGEST_STEP)):
            now, seen = monotonic(), progress()
            if seen != known:
                known, since = seen, now
            elif now - since >= patience:
                raise StandsStill

    def _take(self) -> None:
        """Wait for the turn, in the thread; if nobody wants it any more by then, let go at once."""
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        with self._guard:
            if self._is_over:
                os.close(self._handle)
            else:
                self._has_turn.release()
