"""Knowing at once that a process has ended, without being its parent.

Linux gives a descriptor per process (pidfd) that becomes readable at exit; macOS has kqueue. Where
neither is to be had, the process is looked at every 10 ms. A zombie counts as gone.
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
        """A source that says which identities ended. `add` is False where it cannot watch one."""

        def add(self, identity: Identity) -> bool: ...
        def discard(self, identity: Identity) -> None: ...
        def poll(self, timeout: float) -> list[Identity]: ...
        def fileno(self) -> int: ...
        def close(self) -> None: ...


_INTERVAL = 0.01
# How often the clock of a wait is asked how fast it goes.
_LONGEST_WAIT = 0.1


def wait_gone(identities: Iterable[Identity], timeout: float) -> set[Identity]:
    """Wait until all are gone or the time is over, by the load-adjusted clock; return those still alive."""
    left = {identity for identity in identities if is_alive(identity)}
    if not left:
        return left
    deadline = load_adjusted_clock.now() + timeout
    watch = ExitWatch()
    try:
        for identity in left:
            watch.add(identity, identity)
        while left and (rest := deadline - load_adjusted_clock.now()) > 0:
            left.difference_update(watch.poll(min(rest, _LONGEST_WAIT)))
    finally:
        watch.close()
    return {identity for identity in left if is_alive(identity)}


class ExitWatch:
    """Many processes, each with a tag that is given back once when it has ended."""

    __slots__ = ("_events", "_gone", "_polled", "_tags", "_wake_read", "_wake_write")

    def __init__(self) -> None:
        """Start with nothing to watch."""
        self._tags: dict[Identity, object] = {}
        self._polled: set[Identity] = set()
        self._gone: list[Identity] = []
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._events = _new_events(self._wake_read)

    def add(self, identity: Identity, tag: object) -> None:
        """Watch a process; one that is gone already is reported by the next poll."""
        self.discard(identity)
        self._tags[identity] = tag
        watched = self._events.add(identity)
        # Looked at after the watch began: a process that ended before is not missed, and a stranger
        # that has the pid now is not taken for it.
        if not is_alive(identity):
            self._gone.append(identity)
            self._wake()
        elif not watched:
            self._polled.add(identity)

    def discard(self, identity: Identity) -> None:
        """Stop watching a process; its tag is not reported any more."""
        if identity in self._tags:
            del self._tags[identity]
            self._events.discard(identity)
            self._polled.discard(identity)

    def fileno(self) -> int:
        """Return a descriptor that is readable when poll has something to say at once."""
        return self._events.fileno()

    def poll(self, timeout: float) -> list[object]:
        """Return the tags of processes that ended, waiting at most timeout seconds for the first."""
        deadline = monotonic() + timeout
        while True:
            rest = max(0.0, deadline - monotonic())
            wait = 0.0 if self._gone else min(rest, _INTERVAL) if self._polled else rest
            gone = self._events.poll(wait)
            gone += self._gone + [identity for identity in self._polled if not is_alive(identity)]
            self._gone = []
            self._drain()
            tags = [self._tags[identity] for identity in dict.fromkeys(gone) if identity in self._tags]
            for identity in gone:
                self.discard(identity)
            if tags or monotonic() >= deadline:
                return tags

    def __len__(self) -> int:
        """Return how many processes are watched."""
        return len(self._tags)

    def close(self) -> None:
        """Let go of every descriptor; a second time does nothing."""
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
