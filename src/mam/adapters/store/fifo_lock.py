"""A file lock with a queue: the kernel gives the lock to the waiting processes in order of arrival.

A process that polls can miss a lock for as long as others want it, and the polling takes time from the
holder: of 100 polling writers on a busy machine, 28 gave up after ten seconds. Here a writer waits as long
as the queue moves, and gives up only when the queue stops moving.
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


class QueueStuck(Exception):
    """The queue did not move for too long: the holder of the lock lives and does not release it."""


@contextmanager
def hold(path: str, patience: float) -> Iterator[None]:
    """Hold the lock; wait in the queue as long as it moves at least once in `patience` seconds.

    The kernel releases the lock when the holder dies. Raises QueueStuck, or OSError without a lock file.
    """
    handle = os.open(path, _FLAGS, 0o600)
    try:
        if not _take_at_once(handle):
            _wait(handle, path, patience)
        # The changed time shows the waiting processes that the queue moves.
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


# Places in a queue that were given up, by lock file. While such a place still blocks its thread, mam takes
# no second one. Otherwise a process that tries for hours, while the holder is stopped, would collect threads.
_given_up: dict[str, _Place] = {}


def _wait(handle: int, path: str, patience: float) -> None:
    """Wait until this process holds the lock."""
    before = _given_up.get(path)
    place = _Place(handle) if before is None or before.is_over else None
    try:
        if place is not None and place.enter():
            _watch(handle, place.has_turn, patience)
        else:
            _watch(handle, lambda seconds: _poll(handle, seconds), patience)
    except BaseException:
        if place is not None and not place.is_over:
            _given_up[path] = place
        raise


def _watch(handle: int, has_turn: Callable[[float], bool], patience: float) -> None:
    """Wait for the turn; raise QueueStuck if no process had a turn for too long."""
    last_change, since = os.fstat(handle).st_mtime_ns, monotonic()
    while not has_turn(min(patience, _LONGEST_STEP)):
        now, change = monotonic(), os.fstat(handle).st_mtime_ns
        if change != last_change:
            last_change, since = change, now
        elif now - since >= patience:
            raise QueueStuck


def _poll(handle: int, seconds: float) -> bool:
    from mam.adapters.system.deadline import Deadline

    deadline = Deadline(seconds, clock=monotonic)
    while not _take_at_once(handle):
        if not deadline.pause(_POLL):
            return False
    return True


class _Place:
    """A place in the kernel's queue. Only a blocking call has such a place, so a thread makes the call.

    The thread has a descriptor of its own for the same lock. The lock is held while either descriptor is
    open. So if the turn comes after this process gave up, the lock is released at once.
    """

    def __init__(self, handle: int) -> None:
        self._handle = os.dup(handle)
        self._turn = _thread.allocate_lock()
        self._turn.acquire()
        self.is_over = False

    def enter(self) -> bool:
        """Enter the queue; False if no thread can be started."""
        try:
            _thread.start_new_thread(self._block, ())
        except RuntimeError:
            self.is_over = True
            os.close(self._handle)
            return False
        return True

    def has_turn(self, seconds: float) -> bool:
        """Wait at most so many seconds for the turn; tell whether it came."""
        return self._turn.acquire(timeout=seconds)

    def _block(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX)
        finally:
            os.close(self._handle)
            self.is_over = True
            self._turn.release()
