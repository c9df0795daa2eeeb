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
_LONGEST_STEP, _POLL = 0.5, 0.02


class StandsStill(Exception):
    """The queue did not move for too long: its holder lives, and does not let go."""


@contextmanager
def hold(path: str, patience: float) -> Iterator[None]:
    """Hold the lock file; wait in line for it while the line moves, at most `patience` seconds apart.

    The kernel lets go of it when the holder dies. Raises StandsStill, or OSError where there is no such file.
    """
    handle = os.open(path, _FLAGS, 0o600)
    try:
        if not _take_at_once(handle):
            _wait(handle, path, patience)
        # Whoever waits sees by this that the line moves.
        os.utime(handle)
        yield
    finally:
        os.close(handle)


def _take_at_once(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# Places in a line that were given up, by lock file. While one is still blocked no second one is taken:
# a process that tries for hours, while the holder is suspended, would collect threads.
_given_up: dict[str, _Place] = {}


def _wait(handle: int, path: str, patience: float) -> None:
    """Return once the lock is held."""
    before = _given_up.get(path)
    place = _Place(handle) if before is None or before.is_over else None
    try:
        if place is not None and place.enter():
            _watch(handle, place.comes_up, patience)
        else:
            _watch(handle, lambda seconds: _poll(handle, seconds), patience)
    except BaseException:
        if place is not None and not place.is_over:
            _given_up[path] = place
        raise


def _watch(handle: int, comes_up: Callable[[float], bool], patience: float) -> None:
    """Wait for the turn; raise StandsStill when nobody had one for too long."""
    known, since = os.fstat(handle).st_mtime_ns, monotonic()
    while not comes_up(min(patience, _LONGEST_STEP)):
        now, seen = monotonic(), os.fstat(handle).st_mtime_ns
        if seen != known:
            known, since = seen, now
        elif now - since >= patience:
            raise StandsStill


def _poll(handle: int, seconds: float) -> bool:
    from mam.adapters.system.deadline import Deadline

    deadline = Deadline(seconds, clock=monotonic)
    while not _take_at_once(handle):
        if not deadline.pause(_POLL):
            return False
    return True


class _Place:
    """A place in the kernel's queue. Only a call that blocks has one, so a thread makes it.

    The thread has a descriptor of its own for the same lock. The lock is held while either is open, so it
    is dropped at once where the turn comes after everybody gave up.
    """

    def __init__(self, handle: int) -> None:
        self._handle = os.dup(handle)
        self._turn = _thread.allocate_lock()
        self._turn.acquire()
        self.is_over = False

    def enter(self) -> bool:
        """Stand in line; False where no thread can be had."""
        try:
            _thread.start_new_thread(self._block, ())
        except RuntimeError:
            self.is_over = True
            os.close(self._handle)
            return False
        return True

    def comes_up(self, seconds: float) -> bool:
        """Wait so long for the turn."""
        return self._turn.acquire(timeout=seconds)

    def _block(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        finally:
            os.close(self._handle)
            self.is_over = True
            self._turn.release()
