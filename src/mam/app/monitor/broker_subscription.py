"""Monitors a root and subscribes to a broker, so that signed events are in the jobs' records at once.

If a resident runs already, it makes the passes and this process only subscribes. Both take events in, so the
events are passed on from the ledger. While the broker is unreachable, this process makes a pass every
RECONCILE_POLL_INTERVAL seconds.
"""

from __future__ import annotations

import select
import time

from mam.adapters.system.file_watch import FileWatch
from mam.app.brokers import config as brokers
from mam.app.brokers.relay_pool import RelayPool, poll_seconds
from mam.app.monitor import watch_or_follow
from mam.app.monitor.decide_when_monitor_ends import MonitorTimeouts
from mam.app.monitor.follow_resident import News
from mam.app.monitor.job_event_news import JobEventNews
from mam.app.monitor.resident import Resident
from mam.app.sessions import reconcile as passes
from mam.app.sessions.ending_processes import EndingProcesses
from mam.core.errors import InvalidSettings, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from mam.app.context.context import Context
    from mam.app.monitor.supervised_task import ResidentTask
    from mam.core.broker_address import Broker
    from mam.core.caller import Caller

    Document = dict[str, Any]
    Tell = Callable[[Document], None]

_NET = 60.0


def subscribe(
    context: Context,
    caller: Caller,
    requested_url: str | None,
    tell: Tell,
    *,
    timeout: float = 0.0,
    idle_timeout: float = 0.0,
    tasks: Iterable[ResidentTask] = (),
) -> str:
    """Monitor and subscribe; return why it ended. `tell` gets drifts, notices and the events of all jobs."""
    context.require_registry()
    broker = brokers.find(context, requested_url)
    if broker is None:
        raise InvalidSettings(
            "no broker is configured", hint="--broker mqtt://user@host names one, or [broker] in config.toml"
        )
    poll_seconds(context)
    limits = MonitorTimeouts(timeout, idle_timeout)

    def tell_event(document: Document) -> None:
        limits.note_event()
        tell(document)

    def tell_other(document: Document) -> None:
        # The relay passes on only the events that this process took in itself.
        if "event" not in document:
            tell(document)

    events = JobEventNews(context, tell_event)
    return watch_or_follow.watch_or_follow(
        lambda: Resident(context, caller, tell_other, [*tasks, events], subscribe=broker).run(limits),
        lambda: _Subscriber(context, caller, broker, tell_other, limits, events).run(),
    )


class _Subscriber:
    """Subscribes while a resident of another process makes the passes, and follows what it records."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        broker: Broker,
        tell: Tell,
        limits: MonitorTimeouts,
        events: JobEventNews,
    ) -> None:
        self.context = context
        self.caller = caller
        self.tell = tell
        self.limits = limits
        self.relays = RelayPool(context, self.caller, self._pass_on, always=broker, is_alone=False)
        self.news = News(context)
        self.events = events
        self.ending = EndingProcesses()
        self.due = time.monotonic() + _NET

    def _pass_on(self, document: Document) -> None:
        self.limits.note_event()
        self.tell(document)

    def run(self) -> str:
        """Run until a timeout and return why; return an empty string when the resident has ended."""
        watch = FileWatch()
        watch.keep({self.context.paths.state: None})
        try:
            while watch_or_follow.is_watched(self.context):
                self._look()
                if reason := self.limits.end_reason():
                    return reason
                until = min(self.due, self.relays.due(), self.limits.next_end())
                seconds = min(watch_or_follow.NET, max(0.0, until - time.monotonic()))
                select.select([watch.fileno(), *self.relays.handles()], [], [], seconds)
                watch.poll()
            return ""
        finally:
            watch.close()
            self.relays.close()

    def _look(self) -> None:
        try:
            self.relays.tick()
            self.events.tick()
            if (wait := self.relays.seconds_until_pass()) is not None:
                self.due = min(self.due, time.monotonic() + wait)
            if time.monotonic() >= self.due:
                self.due = time.monotonic() + _NET
                passes.reconcile(self.context, self.caller, ending=self.ending)
        except MamError as error:
            self._pass_on({"error": error.as_json()["error"]})
            self.context.registry.close()
        for document in self.news.take():
            self._pass_on(document)
