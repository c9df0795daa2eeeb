"""One broker of a root: what the outbox holds goes out, and what somebody signed elsewhere comes in.

The database stays the ledger. Whatever the broker loses is published again: what it did not acknowledge,
all that is recent when it does not know this client any more, and a job's whole log when somebody who
waits for it asks. Receivers count an event once.
"""

from __future__ import annotations

import hashlib
import random
import select
import time
from functools import partial

from mam.adapters.store.tables import jobs, outbox
from mam.adapters.system.file_watch import FileWatch
from mam.app.brokers import config as brokers
from mam.app.jobs.event import take_in
from mam.app.jobs.find import enrol, token_of
from mam.core import broker as rules
from mam.core import job_event as events
from mam.core import republish_request
from mam.core.errors import JobNotFound, MamError, NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.mqtt.connection import Connection, ReceivedMessage
    from mam.adapters.store.tables.outbox import OutboxRow
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.broker import Broker
    from mam.core.caller import Caller

    Document = dict[str, Any]

CONNECTED, LOST = "connected", "lost"
_CONNECT_SECONDS, _ACK_SECONDS = 5.0, 10.0
# What is newer than this is published again to a broker that forgot, and a job at most so often.
_RECENT_SECONDS, _AGAIN_SECONDS = 3600.0, 2.0
# A commit is told when it is written, and can be read only some moments later.
_LOOKS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_NET = 1.0
_MOST_JUDGED = 20_000
# A refusal is not mended by asking soon.
_AS_MANY_FAILURES = 6


class Relay:
    """A connection that is kept up until it is told to end."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        broker: Broker,
        tell: Callable[[Document], None],
        *,
        publishes: bool = True,
    ) -> None:
        """`tell` hears of the connection, of each event that was taken in, and of what was refused.

        One that does not publish leaves that to another process.
        """
        self.context = context
        self.caller = caller
        self.broker = broker
        self.tell = tell
        self.publishes = publishes
        self._link: Connection | None = None
        self._password: str | None = None
        self._is_subscribed = False
        self._state = ""
        self._due: list[float] = []
        # When a job's log may be published again, and whose is to be.
        self._may_again: dict[str, float] = {}
        self._owed: set[str] = set()
        self._known: dict[str, bool] = {}
        self._judged: set[int] = set()

    def run(self, stop: int) -> None:
        """Publish and hear until `stop` can be read. What goes wrong is told, and tried again later."""
        failures = 0
        try:
            while True:
                try:
                    self._connect()
                    failures = 0
                    self._serve(stop)
                    return
                except MamError as error:
                    failures += 1
                    self._tell_state(LOST, error)
                    self.context.registry.close()
                    many = failures if error.retryable else max(failures, _AS_MANY_FAILURES)
                    if _can_be_read(stop, rules.pause(many, random.random())):  # noqa: S311
                        return
        finally:
            if self._link is not None:
                self._link.close()
            self.context.close()

    def _connect(self) -> None:
        from mam.adapters.mqtt.connection import Connection

        password = brokers.password(self.context, self.broker)
        if self._link is None or password != self._password:
            self._link = Connection(self.broker, password, role="relay", listens=True)
            self._password, self._is_subscribed = password, False
        self._link.open(_CONNECT_SECONDS)
        self._is_subscribed = self._is_subscribed and self._link.was_known
        if not self._is_subscribed:
            leaves = (events.EVENTS, events.STATUS, *([republish_request.ASK] if self.publishes else []))
            self._link.subscribe([self.broker.topic("+", leaf) for leaf in leaves], _ACK_SECONDS)
            if self.publishes:
                self.context.registry.note(self._renew)
            self._is_subscribed = True
        self._tell_state(CONNECTED, None)

    def _renew(self, draft: Transaction) -> None:
        for job_id in outbox.recent(draft, draft.now - _RECENT_SECONDS):
            self._again(draft, job_id)

    def _serve(self, stop: int) -> None:
        assert self._link is not None
        watch = FileWatch()
        watch.keep({self.context.paths.state: None})
        try:
            while True:
                for heard in self._link.take():
                    self._hear(heard)
                    self._link.done_with(heard)
                if self.publishes:
                    self._answer()
                    self._publish()
                ready = self._link.step(self._patience(), watch.fileno(), stop)
                if stop in ready:
                    return
                now = time.monotonic()
                self._due = [one for one in self._due if one > now]
                if watch.fileno() in ready:
                    watch.poll()
                    self._due = [now + seconds for seconds in _LOOKS]
        finally:
            watch.close()

    def _patience(self) -> float:
        assert self._link is not None
        if self._link.heard:
            return 0.0
        return min(self._due, default=time.monotonic() + _NET) - time.monotonic()

    def _publish(self) -> None:
        """Hand the broker what waits, and note what it acknowledged; the order of a job is kept."""
        link = self._link
        assert link is not None
        none: list[OutboxRow] = []
        sent: dict[int, int] = {}
        try:
            for parcel in self.context.registry.peek(self._waiting, none):
                topic = self.broker.topic(parcel.job_id, parcel.topic)
                self._remember(parcel.job_id, parcel.payload.encode())
                sent[link.publish(topic, parcel.payload, retain=parcel.retain)] = parcel.seq
            link.finish(sent, _ACK_SECONDS)
        finally:
            done = [seq for number, seq in sent.items() if number in link.acknowledged]
            link.acknowledged.clear()
            if done:
                self.context.registry.note(lambda draft: outbox.settle(draft, done))

    def _waiting(self, draft: Transaction) -> list[OutboxRow]:
        mine = [job_id for job_id in outbox.waiting_jobs(draft) if self._is_ours(draft, job_id)]
        return [parcel for job_id in mine for parcel in outbox.waiting(draft, job_id=job_id)]

    def _is_ours(self, draft: Transaction, job_id: str) -> bool:
        """Tell whether a job is published here: a job's broker stays what it is."""
        if job_id not in self._known:
            job = jobs.find(draft, job_id)
            theirs = rules.of_record(job.data) if job else None
            self._known[job_id] = theirs is not None and theirs.as_json() == self.broker.as_json()
        return self._known[job_id]

    def _hear(self, heard: ReceivedMessage) -> None:
        """Take in what is about a job of this root; what others have on the same broker is theirs."""
        for leaf in (events.EVENTS, events.STATUS, republish_request.ASK):
            job_id = self.broker.job_of(heard.topic, leaf)
            if job_id is None or not events.is_job_id(job_id) or not self._is_known_here(job_id):
                continue
            if leaf == republish_request.ASK:
                self._listen_to(job_id, heard.payload)
            elif not self._is_echo(job_id, heard):
                self._take_in(job_id, heard, is_retained=heard.is_retained and leaf == events.EVENTS)

    def _is_known_here(self, job_id: str) -> bool:
        try:
            enrol(self.context, job_id)
        except (JobNotFound, NotAllowed):
            return False
        return True

    def _is_echo(self, job_id: str, heard: ReceivedMessage) -> bool:
        """Tell whether these are our own words, or some that were looked at before."""
        mark = hash((job_id, heard.payload))
        if mark in self._judged:
            return True
        text = heard.payload.decode("utf-8", "replace")
        return self.context.registry.peek(lambda draft: outbox.has(draft, job_id, text), False)

    def _take_in(self, job_id: str, heard: ReceivedMessage, *, is_retained: bool) -> None:
        # Others may listen too: to the same broker, or to it under another address.
        mark = hashlib.sha256(b"%d" % is_retained + heard.payload).hexdigest()
        done = take_in(
            self.context, self.caller, heard.payload, job_id=job_id, is_retained=is_retained, mark=mark
        )
        self._remember(job_id, heard.payload)
        if done["verdict"] == events.APPLIED:
            self.tell({"event": events.parse(heard.payload, job_id)})
        elif done["verdict"] == "refused":
            self.tell({"refused": done})

    def _remember(self, job_id: str, payload: bytes) -> None:
        """Keep in mind what needs no second look."""
        if len(self._judged) > _MOST_JUDGED:
            self._judged.clear()
        self._judged.add(hash((job_id, payload)))

    def _listen_to(self, job_id: str, payload: bytes) -> None:
        """Owe a job's log to somebody who has its token; the same question again is somebody's echo."""
        if hash((job_id, payload)) in self._judged:
            return
        try:
            is_genuine = republish_request.is_genuine(payload, job_id, token_of(self.context, job_id))
        except NotAllowed:
            return
        if is_genuine:
            self._remember(job_id, payload)
            self._owed.add(job_id)
        else:
            self.tell({"refused": {"job_id": job_id, "verdict": "refused", "reason": "a forged question"}})

    def _answer(self) -> None:
        """Publish again what somebody asked for, but a job not as often as they like."""
        now = time.monotonic()
        for job_id in sorted(self._owed):
            at = self._may_again.get(job_id, 0.0)
            if now < at:
                self._due.append(at)
                continue
            self._owed.remove(job_id)
            self._may_again[job_id] = now + _AGAIN_SECONDS
            self.context.registry.note(partial(self._again, job_id=job_id))

    def _again(self, draft: Transaction, job_id: str) -> None:
        if self._is_ours(draft, job_id):
            outbox.again(draft, job_id)

    def _tell_state(self, state: str, error: MamError | None) -> None:
        said = f"{state}: {error}"
        if said != self._state:
            self._state = said
            told: Document = {"address": self.broker.address, "state": state}
            self.tell({"broker": {**told, "error": error.as_json()["error"] if error else None}})


def _can_be_read(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
