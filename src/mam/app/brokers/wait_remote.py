"""Waits for jobs of another machine, with only a broker and the tokens of the jobs.

The signature of each event proves its origin. The broker retains the status, so a process that starts after
the end of a job still receives the end. It asks the job's machine to publish again what was lost.
"""

from __future__ import annotations

import random
import secrets
import time

from mam.adapters.system import load_adjusted_clock
from mam.app.brokers import config as brokers
from mam.core import broker_address as rules
from mam.core import job_event as events
from mam.core import job_rules as states
from mam.core import republish_request
from mam.core.errors import BrokerDown, EventRefused, NotAllowed, TimedOut, Usage
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mam.adapters.mqtt.connection import Connection
    from mam.app.context.context import Context
    from mam.core.broker_address import Broker
    from mam.core.job_event import Event

    Document = dict[str, Any]

_CONNECT_SECONDS, _ACK_SECONDS = 5.0, 10.0
# After the end of a job, missing events may still arrive, and an unconfirmed end may still be rejected. So
# the wait ends only when nothing was received for so many seconds.
_LINGER_SECONDS = 2.0
_NET, _LOOK = 5.0, 0.2


class _Job:
    """What was received about one job.

    An event that the job's machine recorded names its author in `by`. An event without `by` was signed
    elsewhere, and the job's machine may still check or reject it. Its `completed` is unconfirmed until
    nothing else is received.

    Attempts and numbers count within one incarnation of the machine's database. A restore renews it and goes
    back in time, so what was received before says nothing about the job any more.
    """

    def __init__(self, job_id: str, token: str) -> None:
        self.id = job_id
        self.token = token
        self.end: Event | None = None
        self._received_at = 0.0
        self._incarnation: str | None = None
        self._attempt = 0
        self._signatures: set[str] = set()
        self._seqs: set[int] = set()
        # The seqs under which the job's machine checks a `completed`.
        self._checked_seqs: set[int] = set()

    def take_event(self, payload: bytes) -> Event | None:
        """Return the event if it counts and is new; raise EventRefused if the token did not sign it."""
        event = events.parse(payload, self.id)
        if not events.is_signed(event, self.token):
            raise EventRefused("the job's token did not sign it")
        signature = event["data"]["hmac_sig"]
        if signature in self._signatures:
            return None
        self._signatures.add(signature)
        self._received_at = load_adjusted_clock.now()
        if not self._is_of_current_incarnation(event):
            return event
        self._seqs.add(event["seq"])
        self._attempt = max(self._attempt, events.attempt_of(event))
        if event["data"].get("checking"):
            self._checked_seqs.add(event["seq"])
            if self.end is not None and not self._counts(self.end):
                self.end = None
        if event["event"] in events.TERMINAL:
            if not self._counts(event) or (self.end is not None and not _is_unconfirmed(self.end)):
                return None
            self.end = event
        return event

    def _is_of_current_incarnation(self, event: Event) -> bool:
        """Tell whether an event counts; the first event of a later incarnation begins anew."""
        incarnation = events.incarnation_of(event)
        if incarnation is None or incarnation == self._incarnation:
            return True
        if self._incarnation is not None:
            if incarnation < self._incarnation:
                return False
            self.end, self._attempt = None, 0
            self._seqs, self._checked_seqs = set(), set()
        self._incarnation = incarnation
        return True

    def _counts(self, end: Event) -> bool:
        is_old = events.attempt_of(end) < self._attempt
        return not is_old and not (_is_unconfirmed(end) and end["seq"] in self._checked_seqs)

    def is_over(self) -> bool:
        """Tell whether the job has ended and all its events are here, or no further event arrives."""
        if self.end is None:
            return False
        is_whole = len(self._seqs) >= self.end["seq"] and not _is_unconfirmed(self.end)
        return is_whole or load_adjusted_clock.now() >= self._received_at + _LINGER_SECONDS

    def as_json(self) -> Document:
        """Return how the job ended, in the words of a job's record."""
        assert self.end is not None
        return {
            "job_id": self.id,
            "status": states.status_after(states.JobStatus.RUNNING, self.end["event"], self.end["data"]),
            "attempt": events.attempt_of(self.end),
            "finished_at": self.end["timestamp"],
            "terminal_event": self.end["event"],
            "terminal_detail": self.end["detail"],
            "reason": self.end["data"].get("reason"),
        }


def _is_unconfirmed(event: Event) -> bool:
    return "by" not in event["data"]


class _Subscription:
    """The connection to the broker, with the subscription to the jobs."""

    def __init__(self, context: Context, broker: Broker, jobs: dict[str, _Job]) -> None:
        from mam.adapters.mqtt.connection import Connection

        self.context = context
        self.broker = broker
        self.jobs = jobs
        self.failures = 0
        self._is_subscribed = False
        self.connection: Connection = Connection(
            broker, brokers.password(context, broker), role="wait", listens=True
        )

    def receive(self, seconds: float) -> None:
        """Receive for so many seconds; reconnect if the broker is unreachable."""
        try:
            if not self.connection.is_open:
                self.connection.open(min(seconds, _CONNECT_SECONDS))
                self._is_subscribed = self._is_subscribed and self.connection.had_session
                if not self._is_subscribed:
                    self._subscribe()
                self.failures = 0
            else:
                self.connection.step(seconds)
        except BrokerDown as error:
            self.failures += 1
            if self.failures == 1:
                self.context.warn(f"{error}; mam tries again")
            time.sleep(min(seconds, rules.pause(self.failures, random.random())))  # noqa: S311

    def _subscribe(self) -> None:
        leaves = (events.EVENTS, events.STATUS)
        topics = [self.broker.topic(job_id, leaf) for job_id in self.jobs for leaf in leaves]
        self.connection.subscribe(topics, _ACK_SECONDS)
        now = stamp(self.context.now())
        questions = [
            self.connection.publish(
                self.broker.topic(job.id, republish_request.ASK),
                republish_request.write(job.id, job.token, now, secrets.token_hex(8)),
            )
            for job in self.jobs.values()
        ]
        self.connection.finish(questions, _ACK_SECONDS)
        self._is_subscribed = True

    def take_messages(self, tell: Callable[[Document], None]) -> None:
        """Process the received messages; pass each event that counts to `tell`, in order of arrival."""
        for message in self.connection.take():
            for leaf in (events.EVENTS, events.STATUS):
                job = self.jobs.get(self.broker.job_of(message.topic, leaf) or "")
                if job is None:
                    continue
                try:
                    event = job.take_event(message.payload)
                except EventRefused as error:
                    self.context.warn(f"an event of job {job.id} was refused: {error}")
                    continue
                if event is not None:
                    tell(event)
            self.connection.acknowledge(message)


def wait(
    context: Context,
    broker: Broker,
    tokens: Mapping[str, str],
    tell: Callable[[Document], None],
    *,
    timeout: float | None = None,
) -> list[Document]:
    """Return how the jobs ended once all have ended; `tell` gets each event once. Raises TimedOut.

    It waits for an unreachable broker, but raises if the broker refuses the connection.
    """
    if not tokens:
        raise Usage("name a job", hint="a broker cannot list jobs")
    deadline = None if timeout is None else time.monotonic() + timeout
    jobs = {job_id: _Job(job_id, token) for job_id, token in tokens.items()}
    subscription = _Subscription(context, broker, jobs)
    try:
        while open_jobs := [job for job in jobs.values() if not job.is_over()]:
            if deadline is not None and time.monotonic() >= deadline:
                names = ", ".join(sorted(job.id for job in open_jobs)[:5])
                raise TimedOut(f"{names} did not end within {timeout:g} s")
            seconds = _LOOK if any(job.end for job in open_jobs) else _NET
            subscription.receive(
                seconds if deadline is None else max(0.05, min(seconds, deadline - time.monotonic()))
            )
            subscription.take_messages(tell)
        return [job.as_json() for job in jobs.values()]
    finally:
        subscription.connection.close()


def read_token(path: str) -> str:
    """Return the token from a file that was copied from the job's machine."""
    import os

    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise NotAllowed(f"other users can read {path}", hint=f"chmod 600 {path}")
            token = file.read(4096).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a token"
        raise NotAllowed(f"the token file {path} cannot be read: {reason}") from error
    if not token:
        raise NotAllowed(f"the token file {path} is empty")
    return token
