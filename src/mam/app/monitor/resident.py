"""The one process of a root that is awake: it sees deaths, hooks and edits when they happen.

Everything it does is a pass of the monitor, made sooner; a slow full pass is the safety net. Killed at
any moment it leaves nothing behind that the next verb does not mend.
"""

from __future__ import annotations

import os
import select
import time

import mam
from mam.adapters.store import database
from mam.adapters.store.tables import evidence
from mam.adapters.system import process
from mam.adapters.system.exit_watch import ExitWatch
from mam.adapters.system.file_watch import FileWatch
from mam.adapters.tmux.client import TIMEOUT
from mam.app.brokers.relay_pool import RelayPool
from mam.app.context import claims
from mam.app.context.liveness import identity_of
from mam.app.context.start_resident import lock
from mam.app.job_runner.resident_task import JobTask
from mam.app.messages.resident_task import DeliveryTask
from mam.app.monitor import notify
from mam.app.monitor.monitor_timeouts import MonitorTimeouts
from mam.app.monitor.stop_signal import Overdue, told_to_stop
from mam.app.observation import conversations
from mam.app.sessions import reconcile
from mam.app.sessions.begin_change import settle
from mam.app.teams.resident_task import TeamTask
from mam.core.drift import rests_until
from mam.core.errors import MamError, ResidentRuns
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable
    from typing import Any, Protocol

    from mam.adapters.system.process import Identity
    from mam.app.context.context import Context
    from mam.core.broker import Broker
    from mam.core.caller import Caller
    from mam.core.session_row import Row

    class ResidentTask(Protocol):
        """Somebody who goes along: heard after each pass, when it is due on the monotonic clock, and when
        one of its handles can be read.
        """

        def due(self) -> float: ...
        def handles(self) -> Iterable[int]: ...
        def is_needed(self) -> bool:
            """Tell whether somebody counts on it although no session runs."""

        def tick(self) -> str:
            """Return why the watching is to end, or nothing."""


# Seconds between full passes: with few sessions, and from so many on.
_NET, _SLOW_NET, _MANY = 30.0, 60.0, 5
# Words and edits come in bursts: they are looked at together. A death is not made to wait.
_BURST = 0.25
# Seconds for a server that did not answer the last time, except for every so many times.
_BRIEF, _NOW_AND_THEN = 0.5, 10
_TOLD, _ROOT_GONE = "it was told to stop", "its root is gone"
_SPOOL, _STATE, _STORE = "spool", "state", "store"


class Resident:
    """Watches one root until it is told to stop, its time is over, or nothing runs any more."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        tell: Callable[[dict[str, Any]], None],
        tasks: Iterable[ResidentTask] = (),
        *,
        subscribe: Broker | None = None,
    ) -> None:
        """`tell` gets the report of every pass that found something, and what came from a broker."""
        self.context = context
        self.caller = caller
        self.tell = tell
        self.relays = RelayPool(context, self.caller, tell, always=subscribe)
        self.tasks: list[ResidentTask] = [
            self.relays,
            DeliveryTask(context),
            JobTask(context, caller),
            TeamTask(context),
            *tasks,
        ]
        self.exits = ExitWatch()
        self.files = FileWatch()
        self.lock = lock(context)
        self.stopping = ""
        self._watched: dict[str, Identity] = {}
        self._deaths: set[str] = set()
        self._due = 0.0
        self._is_unheard = False
        self._news_in: float | None = None
        self._rows: list[Row] = []
        self._silent: dict[str, int] = {}

    def run(self, limits: MonitorTimeouts | None = None, *, while_any: bool = False) -> str:
        """Watch; return why it ended. Raises ResidentRuns where another one is awake."""
        try:
            if not self.context.paths.exists():
                return _ROOT_GONE
            if not self._take():
                raise ResidentRuns("another resident watches this root", hint="mam monitor follows it")
            with told_to_stop() as wake:
                return self._loop(wake, limits or MonitorTimeouts(), while_any)
        except Overdue:
            return _TOLD
        finally:
            self.close()

    def _take(self) -> bool:
        # A root of the original system has no folder of ours yet; opening the database makes it.
        self.context.registry.writer()
        with database.errors(self.lock.path):
            return self.lock.take({**process.me().as_json(), "version": mam.__version__})

    def close(self) -> None:
        """Let go of everything that is watched, and of the root."""
        self.relays.close()
        self.exits.close()
        self.files.close()
        self.lock.release()

    def _loop(self, wake: int, limits: MonitorTimeouts, while_any: bool) -> str:
        self._pass()
        while True:
            if why := self._tick():
                return why
            now = time.monotonic()
            if (wait := self.relays.next_look()) is not None:
                self._due = min(self._due, now + wait)
            due = [self._due, *(one.due() for one in self.tasks)]
            if why := self._over(while_any) or limits.over():
                return why
            if self._sleep(min([*due, limits.next_end()]) - now, wake):
                limits.happened()
            if self.stopping:
                return self.stopping
            if self._deaths:
                self._pass(only=self._deaths)
            elif time.monotonic() >= self._due:
                self._pass()

    def _over(self, while_any: bool) -> str:
        if not self.context.paths.exists():
            return _ROOT_GONE
        return "nothing runs any more" if while_any and not self._is_needed() else ""

    def _is_needed(self) -> bool:
        return any(is_running(row) for row in self._rows) or any(one.is_needed() for one in self.tasks)

    def _tick(self) -> str:
        """Have each companion look that wants to; what it cannot do now it does later."""
        now, is_unheard = time.monotonic(), self._is_unheard
        self._is_unheard = False
        for task in self.tasks:
            if not (is_unheard or now >= task.due()):
                continue
            try:
                if why := task.tick():
                    return why
            except MamError as error:
                self.tell({"error": error.as_json()["error"]})
        return ""

    def _sleep(self, seconds: float, wake: int) -> bool:
        """Wait for something to happen; True if it did."""
        poll = select.poll()
        theirs = {handle for one in self.tasks for handle in one.handles()}
        for handle in (wake, self.exits.fileno(), self.files.fileno(), *theirs):
            poll.register(handle, select.POLLIN)
        ready = {handle for handle, _ in poll.poll(max(0.0, seconds) * 1000)}
        if not ready:
            return False
        if wake in ready:
            os.read(wake, 64)
            self.stopping = _TOLD
            return True
        self._is_unheard = self._is_unheard or not ready.isdisjoint(theirs)
        self._deaths |= {str(tag) for tag in self.exits.poll(0)}
        if self.files.poll():
            self._due = min(self._due, time.monotonic() + _BURST)
        return True

    def _pass(self, only: set[str] | None = None) -> None:
        """Make a pass, over everything or over some sessions; a failure is told and tried again."""
        self._deaths = set()
        before: int | None = None
        try:
            before = self.context.registry.others()
            if only is None:
                settle(self.context, self.caller)
                self._take_in()
            done = reconcile.reconcile(self.context, self.caller, only)
            self._rows = self._left(only, done)
            self._be_patient(done)
            fresh = [one for one in done.drifts if one["new"]]
            if fresh:
                self.tell({"drifts": fresh, "actions": done.actions})
            if only is None:
                self._notify(done)
        except MamError as error:
            self.tell({"error": error.as_json()["error"]})
            self.context.registry.close()
        self._is_unheard = True
        self._watch()
        if only is None:
            self._due = time.monotonic() + self._interval()
        # What a pass writes wakes nobody; what others wrote meanwhile does.
        tags = self.files.poll()
        if tags and self._is_news(tags, before):
            self._due = min(self._due, time.monotonic() + _BURST)

    def _be_patient(self, done: reconcile.Pass) -> None:
        """Wait only briefly for a server that did not answer, so that others are not kept waiting by it."""
        for server, listing in done.look.listings.items():
            times = 0 if listing.confirmed else self._silent.get(server, 0) + 1
            self._silent[server] = times
            # Now and then it gets its whole time: it may be slow and not frozen.
            self.context.tmux(server).timeout = _BRIEF if times % _NOW_AND_THEN else TIMEOUT

    def _left(self, only: set[str] | None, done: reconcile.Pass) -> list[Row]:
        """Return the rows after a pass; one over a few sessions has ended these, and read no others."""
        if only is None:
            return self.context.registry.view().rows
        ended = {one["session"] for one in done.actions}
        return [row for row in self._rows if row["name"] not in ended]

    def _is_news(self, tags: set[Hashable], before: int | None) -> bool:
        try:
            return (
                _STORE in tags
                or self.context.registry.others() != before
                or self.context.registry.is_edited()
                or bool(evidence.pending(self.context.paths.spool))
            )
        except MamError:
            return True

    def _notify(self, done: reconcile.Pass) -> None:
        """Tell a person which sessions need them; each once."""
        fresh, self._news_in = notify.look(self.context, self.context.registry.view(), done.look.listings)
        for notice in fresh:
            self.tell({"attention": notice})
        if fresh:
            notify.spread_apart(self.context, fresh)

    def _take_in(self) -> None:
        """Take in what a person wrote into the file."""
        if self.context.registry.is_edited():
            claims.change(self.context, lambda draft: None)

    def _interval(self) -> float:
        running = [row for row in self._rows if is_running(row)]
        net = _NET if len(running) < _MANY else _SLOW_NET
        now = self.context.now()
        # A row that is left alone now is looked at as soon as it may be.
        rests = [until - now for row in running if 0 < (until := rests_until(row)) - now < net]
        news = [self._news_in] if self._news_in is not None else []
        return max(_BURST, min([net, *rests, *news]))

    def _watch(self) -> None:
        wanted = {
            row["id"]: identity for row in self._rows if is_running(row) and (identity := identity_of(row))
        }
        for key, identity in list(self._watched.items()):
            if wanted.get(key) != identity:
                self.exits.discard(identity)
                del self._watched[key]
        for key, identity in wanted.items():
            if key not in self._watched:
                self._watched[key] = identity
                self.exits.add(identity, key)
        folders = self._folders()
        # Transcripts grow all the time; what counts is whether they are there.
        self.files.keep(folders, [path for path, tag in folders.items() if tag == _STORE])

    def _folders(self) -> dict[str, Hashable]:
        place = self.context.paths
        found: dict[str, Hashable] = {place.spool: _SPOOL, place.state: _STATE}
        found[os.path.dirname(place.yaml)] = _STATE
        for row in self._rows:
            conversation = current_conversation(row) if is_running(row) else None
            if not conversation:
                continue
            stores = conversations.stores_of(self.context, row)
            folder = self.context.kind(row["agent"]).record_folder(conversation, row["workspace"], stores)
            if folder:
                found[folder] = _STORE
        return found
