"""Following a resident: each difference and each notice that it records, when it records it. Reads only."""

from __future__ import annotations

import time

from mam.adapters.store.tables import drifts, notices
from mam.app.context.commit_watch import Commits
from mam.app.monitor import notify, takeover
from mam.app.monitor.resident import Resident
from mam.core.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from mam.app.context.context import Context
    from mam.app.monitor.monitor_timeouts import MonitorTimeouts
    from mam.app.monitor.resident import ResidentTask
    from mam.core.caller import Caller

    Document = dict[str, Any]
    Tell = Callable[[Document], None]


def attend(
    context: Context, caller: Caller, tell: Tell, limits: MonitorTimeouts, tasks: Iterable[ResidentTask] = ()
) -> str:
    """Watch, or follow the resident of this root until it ends and then watch; return why it ended."""
    return takeover.watch_or_follow(
        lambda: Resident(context, caller, tell, tasks).run(limits), lambda: follow(context, tell, limits)
    )


def follow(context: Context, tell: Tell, limits: MonitorTimeouts) -> str:
    """Tell what is recorded from now on; return why that is over, nothing where the resident has ended."""
    with Commits(context) as commits:
        news = News(context)
        while True:
            # Asked first: what a resident recorded before its end is told by us.
            is_watched = takeover.is_watched(context)
            for document in news.take():
                tell(document)
                limits.happened()
            if not is_watched:
                return ""
            if why := limits.over():
                return why
            commits.wait(min(time.monotonic() + takeover.NET, limits.next_end()))


class News:
    """What the resident of another process records from now on."""

    def __init__(self, context: Context) -> None:
        self._world = context
        self._last = context.registry.peek(drifts.newest, 0)
        self._told = self._notices()

    def take(self) -> list[Document]:
        """Return what is new, as the resident itself would tell it."""
        try:
            return [*self._drifts(), *({"attention": one} for one in self._fresh())]
        except MamError as error:
            self._world.registry.close()
            return [{"error": error.as_json()["error"]}]

    def _drifts(self) -> list[Document]:
        none: list[tuple[int, float, Document]] = []
        found = self._world.registry.peek(lambda draft: drifts.since(draft, self._last), none)
        if not found:
            return []
        self._last = found[-1][0]
        return [{"drifts": [{**drift, "new": True} for _, _, drift in found]}]

    def _notices(self) -> set[tuple[str, str]]:
        none: set[tuple[str, str]] = set()
        return self._world.registry.peek(notices.known, none)

    def _fresh(self) -> list[Document]:
        before, self._told = self._told, self._notices()
        new = self._told - before
        return notify.describe_told(self._world, new) if new else []
