"""Bounds what forged events cost: anybody who can publish to a broker can send as many as they like.

To refuse an event costs little: mam parses it and checks its signature. To log that costs a commit and some
files. So only a few refusals of a job get an entry of their own, and the others are counted; one entry a
minute has their number. If a job gets too many forged events, mam looks at none of its events for a moment.
What the job's token has signed counts nothing, so any number of honest events is taken in.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# Forged events in a second that mam looks at: of one job, and of all jobs that get any. A longer one counts
# as several. For a moment there may be twice as many.
_OF_JOB, _OF_ALL = 500.0, 1000.0
_BYTES_OF_ONE = 4096
# Entries of their own that the refusals of one job get in so many seconds.
_OWN_ENTRIES, _SECONDS = 10, 60.0


class _Bucket:
    """A number that grows with time up to a limit, and that each forged event reduces."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = 2 * rate
        self._at = now

    def is_empty(self, now: float) -> bool:
        self._left = min(2 * self._rate, self._left + (now - self._at) * self._rate)
        self._at = now
        return self._left <= 0

    def take(self, count: int) -> None:
        self._left -= count


class _Refusals:
    """The refused events of one job."""

    __slots__ = ("bucket", "counted", "entries", "since")

    def __init__(self, now: float) -> None:
        self.bucket = _Bucket(_OF_JOB, now)
        self.since = now
        # In the minute that began then: entries of their own, and further events.
        self.entries = 0
        self.counted = 0


class ForgeryLimit:
    """The limit of one connection."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._jobs: dict[str, _Refusals] = {}
        self._all = _Bucket(_OF_ALL, clock())

    def may_look(self, job_id: str) -> bool:
        """Tell whether an event of a job is looked at; if not, it is counted as refused.

        The jobs that nobody forges events for do not share the limit of the others.
        """
        refusals, now = self._jobs.get(job_id), self._clock()
        if refusals is None or not (refusals.bucket.is_empty(now) or self._all.is_empty(now)):
            return True
        refusals.counted += 1
        return False

    def refuse(self, job_id: str, size: int) -> bool:
        """Count a refused event; tell whether it gets an entry of its own."""
        now = self._clock()
        refusals = self._jobs.setdefault(job_id, _Refusals(now))
        for bucket in (refusals.bucket, self._all):
            bucket.take(1 + size // _BYTES_OF_ONE)
        if refusals.entries < _OWN_ENTRIES:
            refusals.entries += 1
            return True
        refusals.counted += 1
        return False

    def due_counts(self, *, at_once: bool = False) -> dict[str, int]:
        """Return the jobs whose minute is over, with the number of events that have no entry yet."""
        now = self._clock()
        counts = {}
        for job_id, refusals in list(self._jobs.items()):
            if not at_once and now - refusals.since < _SECONDS:
                continue
            if refusals.counted:
                counts[job_id] = refusals.counted
                refusals.since, refusals.entries, refusals.counted = now, 0, 0
            else:
                del self._jobs[job_id]
        return counts
