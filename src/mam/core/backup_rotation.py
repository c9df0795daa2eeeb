"""Which copies of a root's state are kept. Pure.

A copy that mam made after a change is kept while it is the last one of its hour, for a day, or of its day,
for a week. A copy that a verb made or restored from is kept for a week, and one from before a migration for
thirty days.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

CHANGE, MANUAL, MIGRATION = "change", "manual", "migration"
# A copy from which a root was restored.
RESTORED = "restored"
_HOUR, _DAY = 3600, 86400
_HOURLY_SECONDS, _DAILY_SECONDS, _MIGRATION_SECONDS = _DAY, 7 * _DAY, 30 * _DAY
# All copies together take at most so many sizes of the database, or as much as a small one may take.
_SIZES, _SMALL = 3, 8 << 20


class Copy:
    """A copy in a folder of copies."""

    __slots__ = ("is_compressed", "made_at", "path", "reason", "since", "size")

    def __init__(
        self,
        path: str,
        made_at: float,
        reason: str,
        size: int,
        *,
        is_compressed: bool,
        since: float | None = None,
    ) -> None:
        """`since` is when its time began, if not when it was made: at the restore that used it."""
        self.since = made_at if since is None else since
        self.path = path
        self.made_at = made_at
        self.reason = reason
        self.size = size
        self.is_compressed = is_compressed


def most_bytes(database_size: int) -> int:
    """Return how much all copies of a database of this size may take together."""
    return max(_SIZES * database_size, _SMALL)


def kept(copies: Sequence[Copy], now: float, most: int | None = None) -> list[Copy]:
    """Return the copies to keep, in the order of their worth; with `most` only those that fit into so much.

    The newest copy is always kept. Next come those from before a migration, then one of each day and those
    that a verb made, and those of each hour last. Among equals the newer one is worth more.
    """
    newest_first = sorted(copies, key=lambda copy: (copy.made_at, copy.path), reverse=True)
    changes = [copy for copy in newest_first if copy.reason == CHANGE]
    migrations = [copy for copy in newest_first if copy.reason == MIGRATION]
    others = [copy for copy in newest_first if copy.reason not in (CHANGE, MIGRATION)]
    daily = [
        *_last_of_each(changes, _DAY, now - _DAILY_SECONDS),
        *_since(others, now - _DAILY_SECONDS),
    ]
    by_worth = dict.fromkeys(
        [
            *newest_first[:1],
            *_since(migrations, now - _MIGRATION_SECONDS),
            *sorted(daily, key=lambda copy: copy.made_at, reverse=True),
            *_last_of_each(changes, _HOUR, now - _HOURLY_SECONDS),
        ]
    )
    return list(by_worth) if most is None else _fitting(by_worth, most)


def _since(copies: Iterable[Copy], at: float) -> list[Copy]:
    return [copy for copy in copies if copy.since > at]


def _last_of_each(newest_first: Iterable[Copy], seconds: int, at: float) -> list[Copy]:
    """Return the last copy of each hour, or of each day, that was made after a time."""
    last: dict[int, Copy] = {}
    for copy in _since(newest_first, at):
        last.setdefault(int(copy.made_at // seconds), copy)
    return list(last.values())


def _fitting(copies: Iterable[Copy], most: int) -> list[Copy]:
    chosen: list[Copy] = []
    total = 0
    for copy in copies:
        if not chosen or total + copy.size <= most:
            chosen.append(copy)
            total += copy.size
    return chosen
