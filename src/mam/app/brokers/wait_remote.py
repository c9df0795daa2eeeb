"""Wait for jobs of another machine, with nothing but a broker and their tokens.

Each event is believed for its signature. The status is retained, so the end is heard also by who comes
after it; what a broker or a lost connection swallowed is asked for.
"""

from __future__ import annotations

import random
import secrets
import time

from mam.adapters.system import load_adjusted_clock
from mam.app.brokers import config as brokers
from mam.core import broker as rules
from mam.core import job as states
from mam.core import job_event as events
from mam.core import republish_request
from mam.core.errors import BrokerDown, EventRefused, NotAllowed, TimedOut, Usage
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mam.adapters.mqtt.connection import Connection
    from mam.app.context.context import Context
    from mam.core.broker import Broker
    from mam.core.job_event import Event

    Document = dict[str, Any]

_CONNECT_SECONDS, _ACK_SECONDS = 5.0, 10.0
# What is known to be missing when a job has ended, or becomes of a claim, is waited for while something is
# still heard, and so long after it.
_LINGER_SECONDS = 2.0
_NET, _LOOK = 5.0, 0.2


class _Job:
    """What was heard of one job.

    Events that its machine recorded say by whom; one that does not was signed elsewhere, and that machine may
    not believe it, or not yet: what it calls completed is a claim until nothing else is heard of it.
    """

    def __init__(self, job_id: str, token: str) -> None:
        self.id = job_id
        self.token = token
        self.end: Event | None = None
        self._heard_at = 0.0
        self._attempt = 0
        self._seen: set[str] = set()
        self._numbers: set[int] = set()
        # The numbers under which the machine looks at a claim.
        self._checked: set[int] = set()

    def hear(self, payload: bytes) -> Event | None:
        """Return the event if it counts and is new; raises EventRefused for what the token did not sign."""
        event = events.parse(payload, self.id)
        if not events.is_signed(event, self.token):
            raise EventRefused("its signature is not the job's")
        signature = event["data"]["hmac_sig"]
        if signature in self._seen:
            return None
        self._seen.add(signature)
        self._heard_at = load_adjusted_clock.now()
        self._numbers.add(event["seq"])
        self._attempt = max(self._attempt, events.attempt_of(event))
        if event["data"].get("checking"):
            self._checked.add(event["seq"])
            if self.end is not None and not self._counts(self.end):
                self.end = None
        if event["event"] in events.TERMINAL:
            if not self._counts(event) or (self.end is not None and not _is_claim(self.end)):
                return None
            self.end = event
        return event

    def _counts(self, end: Event) -> bool:
        is_old = events.attempt_of(end) < self._attempt
        return not is_old and not (_is_claim(end) and end["seq"] in self._checked)

    def is_over(self) -> bool:
        """Tell whether the job has ended and nothing before its end is missing, or will come any more."""
        if self.end is None:
            return False
        is_whole = len(self._numbers) >= self.end["seq"] and not _is_claim(self.end)
        return is_whole or load_adjusted_clock.now() >= self._heard_at + _LINGER_SECONDS

    def as_json(self) -> Document:
        """Return how it ended, as a record says it."""
        assert self.end is not None
        return {
            "job_id": self.id,
            "status": states.after(states.JobStatus.RUNNING, self.end["event"], self.end["data"]),
            "attempt": events.attempt_of(self.end),
            "finished_at": self.end["timestamp"],
            "terminal_event": self.end["event"],
            "terminal_detail": self.end["detail"],
            "reason": self.end["data"].get("reason"),
        }


def _is_claim(event: Event) -> bool:
    return "by" not in event["data"]


class _Waiting:
    """The way to the broker, for as long as somebody waits."""

    def __init__(self, context: Context, broker: Broker, wanted: dict[str, _Job]) -> None:
        from mam.adapters.mqtt.connection import Connection

        self.context = context
        self.broker = broker
        self.wanted = wanted
        self.failures = 0
        self._has_asked = False
        self.link: Connection = Connection(
            broker, brokers.password(context, broker), role="wait", listens=True
        )

    def go_on(self, seconds: float) -> None:
        """Hear for so long; where the broker is away, try to find it again."""
        try:
            if not self.link.is_open:
                self.link.open(min(seconds, _CONNECT_SECONDS))
                self._has_asked = self._has_asked and self.link.was_known
                if not self._has_asked:
                    self._ask()
                self.failures = 0
            else:
                self.link.step(seconds)
        except BrokerDown as error:
            self.failures += 1
            if self.failures == 1:
                self.context.warn(f"{error}; trying again")
            time.sleep(min(seconds, rules.pause(self.failures, random.random())))  # noqa: S311

    def _ask(self) -> None:
        leaves = (events.EVENTS, events.STATUS)
        topics = [self.broker.topic(job_id, leaf) for job_id in self.wanted for leaf in leaves]
        self.link.subscribe(topics, _ACK_SECONDS)
        now = stamp(self.context.now())
        questions = [
            self.link.publish(
                self.broker.topic(job.id, republish_request.ASK),
                republish_request.write(job.id, job.token, now, secrets.token_hex(8)),
            )
            for job in self.wanted.values()
        ]
        self.link.finish(questions, _ACK_SECONDS)
        self._has_asked = True

    def hear(self, tell: Callable[[Document], None]) -> None:
        """Take what arrived; tell each event that counts, in the order in which they came."""
        for heard in self.link.take():
            for leaf in (events.EVENTS, events.STATUS):
                job = self.wanted.get(self.broker.job_of(heard.topic, leaf) or "")
                if job is None:
                    continue
                try:
                    event = job.hear(heard.payload)
                except EventRefused as error:
                    self.context.warn(f"an event of job {job.id} was refused: {error}")
                    continue
                if event is not None:
                    tell(event)
            self.link.done_with(heard)


def wait(
    context: Context,
    broker: Broker,
    tokens: Mapping[str, str],
    tell: Callable[[Document], None],
    *,
    timeout: float | None = None,
) -> list[Document]:
    """Return the jobs, by id, once all have ended; `tell` gets each event once. Raises TimedOut.

    A broker that is away is waited for; one that refuses us is not.
    """
    if not tokens:
        raise Usage("name a job", hint="a broker does not say which jobs there are")
    deadline = None if timeout is None else time.monotonic() + timeout
    wanted = {job_id: _Job(job_id, token) for job_id, token in tokens.items()}
    waiting = _Waiting(context, broker, wanted)
    try:
        while left := [job for job in wanted.values() if not job.is_over()]:
            if deadline is not None and time.monotonic() >= deadline:
                named = ", ".join(sorted(job.id for job in left)[:5])
                raise TimedOut(f"{named} did not end within {timeout:g} s")
            seconds = _LOOK if any(job.end for job in left) else _NET
            waiting.go_on(
                seconds if deadline is None else max(0.05, min(seconds, deadline - time.monotonic()))
            )
            waiting.hear(tell)
        return [job.as_json() for job in wanted.values()]
    finally:
        waiting.link.close()


def read_token(path: str) -> str:
    """Return the token in a file that was brought from the job's machine."""
    import os

    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise NotAllowed(f"{path} is open to others", hint=f"chmod 600 {path}")
            found = file.read(4096).decode("ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not a token"
        raise NotAllowed(f"the token file {path} cannot be read: {said}") from error
    if not found:
        raise NotAllowed(f"the token file {path} is empty")
    return found
