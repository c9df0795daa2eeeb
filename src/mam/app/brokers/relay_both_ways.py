"""Connects a root with one broker: publishes the outbox, and takes in events that were signed elsewhere.

The database is the ledger, and the broker may lose messages. The relay publishes again what the broker did
not acknowledge, everything recent when the broker has forgotten this client, and a job's whole log when a
waiting process asks for it. Receivers ignore duplicates.
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
from mam.app.brokers.forgery_limit import ForgeryLimit
from mam.app.context import setting_aside
from mam.app.jobs.event import SignedEvent, note_refusals, take_in, take_in_together
from mam.app.jobs.find import token_of
from mam.app.jobs.import_record import ensure_in_ledger
from mam.core import broker_address as rules
from mam.core import job_event as events
from mam.core import republish_request
from mam.core.errors import EventRefused, JobNotFound, MamError, NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from mam.adapters.mqtt.connection import Connection, ReceivedMessage
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.outbox import OutboxRow
    from mam.app.context.context import Context
    from mam.core.broker_address import Broker
    from mam.core.caller import Caller
    from mam.core.job_event import Event

    T = TypeVar("T")
    Document = dict[str, Any]

CONNECTED, LOST = "connected", "lost"
_CONNECT_SECONDS, _ACK_SECONDS = 5.0, 10.0
# Seconds: events younger than the first are published again to a broker that forgot this client; the second
# is the shortest time between two publications of the same job's log.
_RECENT_SECONDS, _AGAIN_SECONDS = 3600.0, 2.0
# Seconds until the next looks at the outbox after a change of the database's files. The file watch fires
# when a commit is being written, and the commit becomes readable only some milliseconds later.
_LOOKS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_NET = 1.0
_MOST_PROCESSED = 20_000
# All jobs that are not of this root count as one, which no job has as its id.
_OTHERS = ""
# A refusal (wrong password, ...) does not end by itself: pause as long as after so many failures.
_AS_MANY_FAILURES = 6


class Relay:
    """Keeps a connection to one broker, and reconnects, until it is told to end."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        broker: Broker,
        tell: Callable[[Document], None],
        *,
        publishes: bool = True,
    ) -> None:
        """`tell` gets the state of the connection, each event that is taken in, and each refusal.

        A relay with `publishes=False` only receives: the resident publishes.
        """
        self.context = context
        self.caller = caller
        self.broker = broker
        self.tell = tell
        self.publishes = publishes
        self._connection: Connection | None = None
        self._password: str | None = None
        self._is_subscribed = False
        self._state = ""
        self._was_connected = False
        self._looks: list[float] = []
        # From when a job's log may be published again, and which logs somebody has requested.
        self._republish_after: dict[str, float] = {}
        self._requested: set[str] = set()
        self._is_job_ours: dict[str, bool] = {}
        self._processed: set[int] = set()
        self._limit = ForgeryLimit()
        # The jobs of this root, as of this commit.
        self._known: set[str] = set()
        self._known_at: int | None = None

    def run(self, stop: int) -> None:
        """Publish and receive until the handle `stop` is readable; report an error and reconnect later."""
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
                    count = failures if error.retryable else max(failures, _AS_MANY_FAILURES)
                    if _can_be_read(stop, rules.pause(count, random.random())):  # noqa: S311
                        return
        finally:
            if self._connection is not None:
                self._connection.close()
            self.context.close()

    def _connect(self) -> None:
        from mam.adapters.mqtt.connection import Connection

        password = brokers.password(self.context, self.broker)
        if self._connection is None or password != self._password:
            self._connection = Connection(self.broker, password, role="relay", listens=True)
            self._password, self._is_subscribed = password, False
        self._connection.open(_CONNECT_SECONDS)
        self._is_subscribed = self._is_subscribed and self._connection.had_session
        if not self._is_subscribed:
            leaves = (events.EVENTS, events.STATUS, *([republish_request.ASK] if self.publishes else []))
            self._connection.subscribe([self.broker.topic("+", leaf) for leaf in leaves], _ACK_SECONDS)
            if self.publishes:
                self.context.registry.note(self._republish_recent)
            self._is_subscribed = True
        self._tell_state(CONNECTED, None)

    def _republish_recent(self, transaction: Transaction) -> None:
        for job_id in outbox.recent(transaction, transaction.now - _RECENT_SECONDS):
            self._republish(transaction, job_id)

    def _serve(self, stop: int) -> None:
        assert self._connection is not None
        watch = FileWatch()
        watch.keep({self.context.paths.state: None})
        try:
            while True:
                messages = self._connection.take()
                self._handle_all(messages)
                for message in messages:
                    self._connection.acknowledge(message)
                self._log_refusals()
                if self.publishes:
                    self._serve_requests()
                    self._publish()
                ready = self._connection.step(self._seconds_to_wait(), watch.fileno(), stop)
                if stop in ready:
                    self._log_refusals(at_once=True)
                    return
                now = time.monotonic()
                self._looks = [at for at in self._looks if at > now]
                if watch.fileno() in ready:
                    watch.poll()
                    self._looks = [now + seconds for seconds in _LOOKS]
        finally:
            watch.close()

    def _seconds_to_wait(self) -> float:
        assert self._connection is not None
        if self._connection.received:
            return 0.0
        return min(self._looks, default=time.monotonic() + _NET) - time.monotonic()

    def _publish(self) -> None:
        """Publish the outbox in the order of each job, and note what the broker acknowledged."""
        connection = self._connection
        assert connection is not None
        none: list[OutboxRow] = []
        sent: dict[int, int] = {}
        try:
            for row in self.context.registry.peek(self._unpublished, none):
                topic = self.broker.topic(row.job_id, row.topic)
                self._remember(row.job_id, row.payload.encode())
                sent[connection.publish(topic, row.payload, retain=row.retain)] = row.seq
            connection.finish(sent, _ACK_SECONDS)
        finally:
            acknowledged = [seq for number, seq in sent.items() if number in connection.acknowledged]
            connection.acknowledged.clear()
            if acknowledged:
                self.context.registry.note(
                    lambda transaction: outbox.set_published(transaction, acknowledged)
                )

    def _unpublished(self, transaction: Transaction) -> list[OutboxRow]:
        job_ids = [
            job_id for job_id in outbox.waiting_jobs(transaction) if self._is_ours(transaction, job_id)
        ]
        return [row for job_id in job_ids for row in outbox.waiting(transaction, job_id=job_id)]

    def _is_ours(self, transaction: Transaction, job_id: str) -> bool:
        """Tell whether a job uses this broker. The answer is cached: the broker of a job never changes."""
        if job_id not in self._is_job_ours:
            job = jobs.find(transaction, job_id)
            job_broker = rules.of_record(job.data) if job else None
            self._is_job_ours[job_id] = (
                job_broker is not None and job_broker.as_json() == self.broker.as_json()
            )
        return self._is_job_ours[job_id]

    def _handle_all(self, messages: list[ReceivedMessage]) -> None:
        """Handle messages that arrived; the events among them that are signed are taken in together."""
        looks = [(message, self._or_set_aside(message, self._look)) for message in messages]
        signed = [(message, event) for message, event in looks if event is not None]
        if len(signed) > 1:
            try:
                self._take_in_together(signed)
            except Exception as error:
                # Each by itself, to find out which one it is.
                if not (setting_aside.is_of_item(error) or isinstance(error, JobNotFound)):
                    raise
            else:
                return
        for message, _ in signed:
            self._handle_or_set_aside(message)

    def _handle_or_set_aside(self, message: ReceivedMessage) -> None:
        self._or_set_aside(message, self._handle)

    def _or_set_aside(self, message: ReceivedMessage, handle: Callable[[ReceivedMessage], T]) -> T | None:
        """Handle a message. One on which mam fails is set aside, and the broker does not send it again."""
        try:
            return handle(message)
        except Exception as error:
            if not setting_aside.is_of_item(error):
                raise
            problem = f"mam cannot take in a message of {message.topic[:200]!r}"
            setting_aside.note(self.context, setting_aside.PAYLOAD, message.topic[:200], error, problem)
            return None

    def _handle(self, message: ReceivedMessage) -> None:
        """Handle one message."""
        signed = self._look(message)
        if signed is not None:
            self._take_in(signed.event["job_id"], message.payload, signed.mark)
            self._remember_event(signed.event, message.payload)

    def _is_in_ledger(self, job_id: str) -> bool:
        """Tell whether a job is in the ledger; a job that only has a foreign record is imported."""
        if job_id in self._known:
            return True
        number = self.context.registry.commit_number()
        if number is None or number != self._known_at:
            nothing: set[str] = set()
            self._known, self._known_at = self.context.registry.peek(jobs.ids, nothing), number
        if job_id in self._known:
            return True
        if not self._limit.may_look(_OTHERS):
            return False
        try:
            ensure_in_ledger(self.context, job_id)
        except (JobNotFound, NotAllowed):
            self._limit.refuse(_OTHERS, 0)
            return False
        self._known.add(job_id)
        return True

    def _look(self, message: ReceivedMessage) -> SignedEvent | None:
        """Return the event of a message that is to be taken in; handle any other message at once.

        Messages about jobs of other roots on the same broker are ignored.
        """
        for leaf in (events.EVENTS, events.STATUS, republish_request.ASK):
            job_id = self.broker.job_of(message.topic, leaf)
            if job_id is None or not events.is_job_id(job_id) or not self._is_in_ledger(job_id):
                continue
            if leaf == republish_request.ASK:
                self._note_request(job_id, message.payload)
            else:
                is_retained = message.is_retained and leaf == events.EVENTS
                return self._look_at_event(job_id, message.payload, is_retained=is_retained)
        return None

    def _look_at_event(self, job_id: str, payload: bytes, *, is_retained: bool) -> SignedEvent | None:
        """Return an event that is neither an echo nor forged: those are many, and are found out cheaply."""
        if hash((job_id, payload)) in self._processed or not self._limit.may_look(job_id):
            return None
        # Another process may receive the same message, from the same broker or another address of it.
        mark = hashlib.sha256(b"%d" % is_retained + payload).hexdigest()
        signed = None if is_retained else self._genuine_event(job_id, payload, mark)
        if signed is None:
            if self._limit.refuse(job_id, len(payload)):
                self._take_in(job_id, payload, mark, is_retained=is_retained)
            return None
        if self._was_processed(signed.event, payload):
            self._remember(job_id, payload)
            return None
        return signed

    def _take_in(self, job_id: str, payload: bytes, mark: str, *, is_retained: bool = False) -> None:
        outcome = take_in(
            self.context, self.caller, payload, job_id=job_id, is_retained=is_retained, mark=mark
        )
        self._remember(job_id, payload)
        self._tell_outcome(outcome, payload)

    def _take_in_together(self, messages: list[tuple[ReceivedMessage, SignedEvent]]) -> None:
        outcomes = take_in_together(self.context, self.caller, [signed for _, signed in messages])
        for (message, signed), outcome in zip(messages, outcomes, strict=True):
            self._remember_event(signed.event, message.payload)
            self._tell_outcome(outcome, message.payload)

    def _tell_outcome(self, outcome: Document, payload: bytes) -> None:
        if outcome["verdict"] == events.APPLIED:
            self.tell({"event": events.parse(payload, outcome["job_id"])})
        elif outcome["verdict"] == "refused":
            self.tell({"refused": outcome})

    def _genuine_event(self, job_id: str, payload: bytes, mark: str) -> SignedEvent | None:
        """Return an event if the job's token signed it. This writes nothing."""
        try:
            event = events.parse(payload, job_id)
            token = token_of(self.context, job_id)
        except (EventRefused, NotAllowed):
            return None
        return SignedEvent(event, token, mark) if events.is_signed(event, token) else None

    def _was_processed(self, event: Event, payload: bytes) -> bool:
        """Tell whether this relay has processed an event, also in other words, or published it itself."""
        job_id = event["job_id"]
        if hash((job_id, event["data"]["hmac_sig"].encode())) in self._processed:
            return True
        text = payload.decode("utf-8", "replace")
        return self.context.registry.peek(
            lambda transaction: jobs.is_recorded(transaction, job_id, event, text), False
        )

    def _log_refusals(self, *, at_once: bool = False) -> None:
        """Log how many events were refused without an entry of their own, for each job once a minute."""
        for job_id, count in self._limit.due_counts(at_once=at_once).items():
            if job_id != _OTHERS:
                note_refusals(self.context, job_id, count)
                reason = f"{count} further events were refused"
                self.tell({"refused": {"job_id": job_id, "verdict": "refused", "reason": reason}})

    def _remember(self, job_id: str, payload: bytes) -> None:
        """Remember a payload that needs no further processing."""
        if len(self._processed) > _MOST_PROCESSED:
            self._processed.clear()
        self._processed.add(hash((job_id, payload)))

    def _remember_event(self, event: Event, payload: bytes) -> None:
        self._remember(event["job_id"], payload)
        self._remember(event["job_id"], event["data"]["hmac_sig"].encode())

    def _note_request(self, job_id: str, payload: bytes) -> None:
        """Note a request for a job's log if the job's token signed it; ignore a repeated request."""
        if hash((job_id, payload)) in self._processed or not self._limit.may_look(job_id):
            return
        try:
            is_genuine = republish_request.is_genuine(payload, job_id, token_of(self.context, job_id))
        except NotAllowed:
            return
        if is_genuine:
            self._remember(job_id, payload)
            self._requested.add(job_id)
        elif self._limit.refuse(job_id, len(payload)):
            self.tell({"refused": {"job_id": job_id, "verdict": "refused", "reason": "a forged request"}})

    def _serve_requests(self) -> None:
        """Publish the requested logs again, each at most once in _AGAIN_SECONDS."""
        now = time.monotonic()
        for job_id in sorted(self._requested):
            at = self._republish_after.get(job_id, 0.0)
            if now < at:
                self._looks.append(at)
                continue
            self._requested.remove(job_id)
            self._republish_after[job_id] = now + _AGAIN_SECONDS
            self.context.registry.note(partial(self._republish, job_id=job_id))

    def _republish(self, transaction: Transaction, job_id: str) -> None:
        if self._is_ours(transaction, job_id):
            outbox.publish_again(transaction, job_id)

    def _tell_state(self, state: str, error: MamError | None) -> None:
        summary = f"{state}: {error}"
        if summary != self._state:
            self._state = summary
            self._was_connected = self._was_connected or state == CONNECTED
            document: Document = {
                "address": self.broker.address,
                "state": state,
                "was_connected": self._was_connected,
            }
            self.tell({"broker": {**document, "error": error.as_json()["error"] if error else None}})


def _can_be_read(handle: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(seconds * 1000))
