"""Follows the resident of another process: passes on each drift and notice that it records. Reads only."""

from __future__ import annotations

import time

from mam.adapters.store.tables import drifts, sent_notices
from mam.app.context.commit_watch import CommitWatch
from mam.app.monitor import notify, watch_or_follow
from mam.app.monitor.resident import Resident
from mam.core.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from mam.app.context.context import Context
    from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts
    from mam.app.monitor.supervised_task import ResidentTask
    from mam.core.caller import Caller

    Document = dict[str, Any]
    Tell = Callable[[Document], None]


def watch_root(
    context: Context, caller: Caller, tell: Tell, limits: MonitorTimeouts, tasks: Iterable[ResidentTask] = ()
) -> str:
    """Watch this root as its resident, or follow the running one and then replace it; return why it ended."""
    return watch_or_follow.watch_or_follow(
        lambda: Resident(context, caller, tell, tasks).run(limits), lambda: follow(context, tell, limits)
    )


def follow(context: Context, tell: Tell, limits: MonitorTimeouts) -> str:
    """Pass on what the resident records; return why to end, or an empty string when it has ended."""
    with CommitWatch(context) as commits:
        news = News(context)
        while True:
            # This is read before the news, so that the last records of an ending resident are not lost.
            is_watched = watch_or_follow.is_watched(context)
            for document in news.take():
                tell(document)
                limits.note_event()
            if not is_watched:
                return ""
            if reason := limits.end_reason():
                return reason
            commits.wait(min(time.monotonic() + watch_or_follow.NET, limits.next_end()))


class News:
    """Reads what the resident of another process has recorded since the last call."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last = context.registry.peek(drifts.newest, 0)
        self._notified = self._notices()

    def take(self) -> list[Document]:
        """Return the new documents, in the form that the resident itself passes to `tell`."""
        try:
            return [*self._drifts(), *({"attention": notice} for notice in self._new_notices())]
        except MamError as error:
            self._context.registry.close()
            return [{"error": error.as_json()["error"]}]

    def _drifts(self) -> list[Document]:
        none: list[tuple[int, float, Document]] = []
        recorded = self._context.registry.peek(
            lambda transaction: drifts.since(transaction, self._last), none
        )
        if not recorded:
            return []
        self._last = recorded[-1][0]
        return [{"drifts": [{**drift, "new": True} for _, _, drift in recorded]}]

    def _notices(self) -> set[tuple[str, str]]:
        none: set[tuple[str, str]] = set()
        return self._context.registry.peek(sent_notices.sent, none)

    def _new_notices(self) -> list[Document]:
        before, self._notified = self._notified, self._notices()
        new = self._notified - before
        return notify.describe_recorded(self._context, new) if new else []
