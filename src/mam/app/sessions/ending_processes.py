"""Remembers processes that have lost their pane, and how long each of them may still take to end."""

from __future__ import annotations

from mam.adapters.system import load_adjusted_clock, process
from mam.core.stop_escalation import GRACE, HANG_UP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.adapters.system.process import Identity


class EndingProcesses:
    """The processes that were seen without their pane, for a monitor that goes on meanwhile.

    A process gets SIGHUP when its pane is closed, and needs a moment to end. Whoever closes a pane, each
    process gets the time that `mam stop` gives it.
    """

    __slots__ = ("_first_seen",)

    def __init__(self) -> None:
        self._first_seen: dict[Identity, float] = {}

    def seconds_left(self, identities: Iterable[Identity]) -> dict[Identity, float]:
        """Return for each process how many load-adjusted seconds are left; 0 or less if none."""
        now = load_adjusted_clock.now()
        self._first_seen = {
            identity: at for identity, at in self._first_seen.items() if process.is_alive(identity)
        }
        return {
            identity: self._first_seen.setdefault(identity, now) + GRACE[HANG_UP] - now
            for identity in identities
        }
