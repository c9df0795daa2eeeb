"""Process exits on macOS, through kqueue. Not tested on a Mac; imported only there."""

from __future__ import annotations

import select
import sys

# For mypy: elsewhere `select` has no kqueue.
assert sys.platform == "darwin"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.system.process import Identity


class KqueueEvents:
    """All processes in one kqueue; each is reported once."""

    def __init__(self, wake: int) -> None:
        """Make the queue readable whenever the descriptor `wake` is readable."""
        self._queue = select.kqueue()
        self._identities: dict[int, Identity] = {}
        self._change(wake, select.KQ_FILTER_READ, select.KQ_EV_ADD, 0)

    def add(self, identity: Identity) -> bool:
        """Watch a process; return False if that is impossible."""
        flags = select.KQ_EV_ADD | select.KQ_EV_ONESHOT
        try:
            self._change(identity.pid, select.KQ_FILTER_PROC, flags, select.KQ_NOTE_EXIT)
        except OSError:
            return False
        self._identities[identity.pid] = identity
        return True

    def discard(self, identity: Identity) -> None:
        """Stop watching a process."""
        if self._identities.get(identity.pid) == identity:
            del self._identities[identity.pid]
            try:  # noqa: SIM105  (contextlib is dear on the start-up path)
                self._change(identity.pid, select.KQ_FILTER_PROC, select.KQ_EV_DELETE, 0)
            except OSError:
                pass  # the process has been reported already, or does not exist any more

    def poll(self, timeout: float) -> list[Identity]:
        """Return the processes that ended."""
        events = self._queue.control(None, max(64, len(self._identities) + 1), timeout)
        pids = [event.ident for event in events if event.filter == select.KQ_FILTER_PROC]
        return [self._identities[pid] for pid in pids if pid in self._identities]

    def fileno(self) -> int:
        """Return the descriptor of the queue."""
        return self._queue.fileno()

    def close(self) -> None:
        """Close the queue."""
        self._queue.close()

    def _change(self, ident: int, kind: int, flags: int, fflags: int) -> None:
        self._queue.control([select.kevent(ident, kind, flags, fflags)], 0, 0)
