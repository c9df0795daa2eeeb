"""Notices at once that a process has ended, without being its parent.

Linux gives a descriptor per process (pidfd) that becomes readable at exit; macOS has kqueue. Where
neither works, the watch checks the process every 10 ms. A zombie counts as ended.
"""

from __future__ import annotations

import os
import sys
from time import monotonic

from mam.adapters.system import load_adjusted_clock
from mam.adapters.system.process import Identity, is_alive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Protocol

    class _Events(Protocol):
        """A source of exits. `add` returns False for a process that the source cannot watch."""

        def add(self, identity: Identity) -> bool: ...
        def discard(self, identity: Identity) -> None: ...
        def poll(self, timeout: float) -> list[Identity]: ...
        def fileno(self) -> int: ...
        def close(self) -> None: ...


_INTERVAL = 0.01
# The load-adjusted clock measures the load at each call, so a long wait calls it this often.
_LONGEST_WAIT = 0.1


def wait_gone(identities: Iterable[Identity], timeout: float) -> set[Identity]:
    """Wait until all processes have ended or the time is over (load-adjusted); return those still alive."""
    alive = {identity for identity in identities if is_alive(identity)}
    if not alive:
        return alive
    deadline = load_adjusted_clock.now() + timeout
    watch = ExitWatch()
    try:
        for identity in alive:
            watch.add(identity, identity)
        while alive and (remaining := deadline - load_adjusted_clock.now()) > 0:
            alive.difference_update(watch.poll(min(remaining, _LONGEST_WAIT)))
    finally:
        watch.close()
    return {identity for identity in alive if is_alive(identity)}


class ExitWatch:
    """A set of watched processes, each with a tag that `poll` returns once when the process has ended."""

    __slots__ = ("_ended", "_events", "_polled", "_tags", "_wake_read", "_wake_write")

    def __init__(self) -> None:
        """Start with nothing to watch."""
        self._tags: dict[Identity, object] = {}
        self._polled: set[Identity] = set()
        self._ended: list[Identity] = []
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._events = _new_events(self._wake_read)

    def add(self, identity: Identity, tag: object) -> None:
        """Watch a process; the next poll reports one that has ended already."""
        self.discard(identity)
        self._tags[identity] = tag
        watched = self._events.add(identity)
        # This check comes after the watch began. So no exit in between is missed, and another process that
        # has the pid by now is not mistaken for this one.
        if not is_alive(identity):
            self._ended.append(identity)
            self._wake()
        elif not watched:
            self._polled.add(identity)

    def discard(self, identity: Identity) -> None:
        """Stop watching a process; poll no longer reports its tag."""
        if identity in self._tags:
            del self._tags[identity]
            self._events.discard(identity)
            self._polled.discard(identity)

    def fileno(self) -> int:
        """Return a descriptor that is readable when poll would return a tag at once."""
        return self._events.fileno()

    def poll(self, timeout: float) -> list[object]:
        """Return the tags of processes that ended, waiting at most timeout seconds for the first."""
        deadline = monotonic() + timeout
        while True:
            remaining = max(0.0, deadline - monotonic())
            wait = 0.0 if self._ended else min(remaining, _INTERVAL) if self._polled else remaining
            ended = self._events.poll(wait)
            ended += self._ended + [identity for identity in self._polled if not is_alive(identity)]
            self._ended = []
            self._drain()
            tags = [self._tags[identity] for identity in dict.fromkeys(ended) if identity in self._tags]
            for identity in ended:
                self.discard(identity)
            if tags or monotonic() >= deadline:
                return tags

    def __len__(self) -> int:
        """Return how many processes are watched."""
        return len(self._tags)

    def close(self) -> None:
        """Close every descriptor; a second call does nothing."""
        if self._wake_read >= 0:
            self._events.close()
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._wake_read = self._wake_write = -1
            self._tags.clear()

    def _wake(self) -> None:
        try:  # noqa: SIM105  (contextlib is dear on the start-up path)
            os.write(self._wake_write, b"!")
        except BlockingIOError:
            pass

    def _drain(self) -> None:
        try:
            while os.read(self._wake_read, 512):
                pass
        except BlockingIOError:
            pass


def _new_events(wake: int) -> _Events:
    if sys.platform == "darwin":
        from mam.adapters.system.exit_watch_darwin import KqueueEvents

        return KqueueEvents(wake)
    else:  # noqa: RET505  (mypy follows the platform only through an else)
        from mam.adapters.system.exit_watch_linux import PidfdEvents

        return PidfdEvents(wake)
