"""Which copies of a root's state are kept. Pure.

A copy that mam made after a change is kept while it is the last one of its hour, for a day, or of its day,
for a week. A copy that a verb made or restored from is kept for a week, and one from before a migration for
thirty days.

A copy has the time that the clock showed, and the clock may have been wrong. So the order does not follow
from the times alone: each time the clock was put back, another run of copies begins. And an age counts only
as far as the copies around it bear it out:

- A copy from the future was made while the clock was ahead, or the clock is behind now. It is as old as the
  next copy, or as its file, and copies from the future keep their distances.
- A copy that is dated more than a week before an earlier one was made while the clock was behind. It is at
  least as young as that one.
- After a leap of more than a week the former copies grow old only once copies since then span a day. The
  clock may have leapt ahead; a machine that was off costs a day.
"""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CHANGE, MANUAL, MIGRATION = "change", "manual", "migration"
# A copy from which a root was restored.
RESTORED = "restored"
_HOUR, _DAY = 3600, 86400
_HOURLY_SECONDS, _DAILY_SECONDS, _MIGRATION_SECONDS = _DAY, 7 * _DAY, 30 * _DAY
# A clock that is behind the newest copy by less was not put back: copies of one second get later times.
SLACK = 60.0
# A leap of the clock by more may cost all copies.
_LEAP, _PROOF = 7 * _DAY, _DAY
# All copies together take at most so many sizes of the database, or as much as a small one may take.
_SIZES, _SMALL = 3, 8 << 20


class Copy:
    """A copy in a folder of copies."""

    __slots__ = ("is_compressed", "made_at", "path", "reason", "run", "since", "size", "written_at")

    def __init__(
        self,
        path: str,
        made_at: float,
        reason: str,
        size: int,
        *,
        is_compressed: bool,
        since: float | None = None,
        run: int = 0,
        written_at: float | None = None,
    ) -> None:
        """`since` is when its time began, if not when it was made: at the restore that used it.

        `run` tells how often the clock had been put back before. `written_at` is when its file was last
        written, such as when it was compressed.
        """
        self.written_at = written_at
        self.since = since
        self.run = run
        self.path = path
        self.made_at = made_at
        self.reason = reason
        self.size = size
        self.is_compressed = is_compressed

    @property
    def order(self) -> tuple[int, float, str]:
        """What is greater for a copy that was made later, whatever the clock said."""
        return self.run, self.made_at, self.path


def run_and_time(newest: Copy | None, now: float) -> tuple[int, float]:
    """Return the run of the next copy, and the time for its name: no two copies of a run have the same."""
    if newest is None:
        return 0, now
    if now < newest.made_at - SLACK:
        return newest.run + 1, now
    return newest.run, max(now, newest.made_at + 1)


def most_bytes(database_size: int) -> int:
    """Return how much all copies of a database of this size may take together."""
    return max(_SIZES * database_size, _SMALL)


def kept(copies: Sequence[Copy], now: float, most: int | None = None) -> list[Copy]:
    """Return the copies to keep, in the order of their worth; with `most` only those that fit into so much.

    The newest copy is always kept. Next come those from before a migration, then one of each day and those
    that a verb made, and those of each hour last. Among equals the newer one is worth more.
    """
    newest_first = sorted(copies, key=lambda copy: copy.order, reverse=True)
    ages = _ages(newest_first[::-1], now)
    changes = [copy for copy in newest_first if copy.reason == CHANGE]
    migrations = [copy for copy in newest_first if copy.reason == MIGRATION]
    others = [copy for copy in newest_first if copy.reason not in (CHANGE, MIGRATION)]
    daily = {
        *_last_of_each(_younger(changes, ages, _DAILY_SECONDS), _DAY),
        *_younger(others, ages, _DAILY_SECONDS),
    }
    by_worth = dict.fromkeys(
        [
            *newest_first[:1],
            *_younger(migrations, ages, _MIGRATION_SECONDS),
            *(copy for copy in newest_first if copy in daily),
            *_last_of_each(_younger(changes, ages, _HOURLY_SECONDS), _HOUR),
        ]
    )
    return list(by_worth) if most is None else _fitting(by_worth, most)


def _younger(copies: Iterable[Copy], ages: dict[Copy, float], seconds: float) -> list[Copy]:
    return [copy for copy in copies if ages[copy] < seconds]


def _last_of_each(newest_first: Iterable[Copy], seconds: int) -> list[Copy]:
    """Return the last copy of each hour, or of each day."""
    last: dict[int, Copy] = {}
    for copy in newest_first:
        last.setdefault(int(copy.made_at // seconds), copy)
    return list(last.values())


def _ages(oldest_first: Sequence[Copy], now: float) -> dict[Copy, float]:
    """Return how old each copy is, as far as anybody can tell."""
    moments = _moments(oldest_first, now)
    before, gap = _leap(moments, now)
    ages = {}
    for copy, moment in zip(oldest_first, moments, strict=True):
        began = moment if copy.since is None else copy.since
        if began > now + SLACK:
            # It was restored while the clock was ahead. The copies from then tell how long ago that is.
            of_then = (at for other, at in zip(oldest_first, moments, strict=True) if other.made_at > now)
            began = max(of_then, default=moment)
        ages[copy] = now - began - (gap if began <= before else 0.0)
    return ages


def _moments(oldest_first: Sequence[Copy], now: float) -> list[float]:
    """Return when each copy was made by a clock that is right now."""
    moments = [copy.made_at for copy in oldest_first]
    latest = now + SLACK
    peak = previous = float("-inf")
    behind: float | None = None
    for place, at in enumerate(moments):
        if at > latest:
            continue
        if at >= peak - _LEAP:
            behind = None
            peak = max(peak, at)
        else:
            behind = previous - at if behind is None else behind
            moments[place] = min(now, at + behind)
        previous = moments[place]
    following = now
    for place in range(len(moments) - 1, -1, -1):
        at = oldest_first[place].made_at
        if at > latest:
            later = oldest_first[place + 1].made_at if place + 1 < len(moments) else 0.0
            moments[place] = following - (max(0.0, later - at) if later > latest else 0.0)
            written = oldest_first[place].written_at
            if written is not None and written <= latest:
                moments[place] = min(moments[place], written)
        following = moments[place]
    return moments


def _leap(moments: Iterable[float], now: float) -> tuple[float, float]:
    """Return the time before the last leap of the clock, and its length, unless copies since bear it out."""
    newest_first = sorted(moments, reverse=True)
    for after, before in pairwise(newest_first):
        if now - after >= _PROOF:
            break
        if after - before > _LEAP:
            return before, after - before
    return float("-inf"), 0.0


def _fitting(copies: Iterable[Copy], most: int) -> list[Copy]:
    chosen: list[Copy] = []
    total = 0
    for copy in copies:
        if not chosen or total + copy.size <= most:
            chosen.append(copy)
            total += copy.size
    return chosen
