"""Process exits on Linux, through pidfd and epoll; imported only there."""

from __future__ import annotations

import os
import select
import sys

# For mypy: elsewhere `select` has no epoll.
assert sys.platform == "linux"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.system.process import Identity


class PidfdEvents:
    """One pidfd per process, all in one epoll."""

    def __init__(self, wake: int) -> None:
        """Make the epoll readable whenever the descriptor `wake` is readable."""
        self._epoll = select.epoll()
        self._epoll.register(wake, select.EPOLLIN)
        self._handles: dict[Identity, int] = {}
        self._identities: dict[int, Identity] = {}

    def add(self, identity: Identity) -> bool:
        """Watch a process; return False if that is impossible."""
        if not hasattr(os, "pidfd_open"):
            return False
        try:
            handle = os.pidfd_open(identity.pid)
        except OSError:
            # The process ended, no descriptor is free, or the kernel or sandbox forbids the call. The caller
            # checks the process itself then.
            return False
        self._epoll.register(handle, select.EPOLLIN)
        self._handles[identity] = handle
        self._identities[handle] = identity
        return True

    def discard(self, identity: Identity) -> None:
        """Stop watching a process."""
        handle = self._handles.pop(identity, None)
        if handle is not None:
            del self._identities[handle]
            self._epoll.unregister(handle)
            os.close(handle)

    def poll(self, timeout: float) -> list[Identity]:
        """Return the processes that ended."""
        ready = self._epoll.poll(timeout, max(64, len(self._handles) + 1))
        return [self._identities[handle] for handle, _ in ready if handle in self._identities]

    def fileno(self) -> int:
        """Return the descriptor of the epoll."""
        return self._epoll.fileno()

    def close(self) -> None:
        """Close every descriptor."""
        for identity in list(self._handles):
            self.discard(identity)
        self._epoll.close()
