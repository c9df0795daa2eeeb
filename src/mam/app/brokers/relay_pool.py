"""Runs one relay thread for each broker that the jobs of a root use.

A broker that does not answer delays nobody: each thread has its own connection to the database and works on
it like another process.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque

from mam.adapters.store.tables import jobs, outbox
from mam.adapters.store.tables.resident_need import WORTH_SECONDS
from mam.app.brokers.relay_both_ways import CONNECTED, Relay
from mam.core import broker_address as rules
from mam.core.errors import Broken, InvalidSettings, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.core.broker_address import Broker
    from mam.core.caller import Caller

    Document = dict[str, Any]

_NET, _POLL = 60.0, 15.0
_GOODBYE_SECONDS = 0.5


class RelayPool:
    """The resident task that starts and ends relays."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        tell: Callable[[Document], None],
        *,
        always: Broker | None = None,
        is_alone: bool = True,
    ) -> None:
        """`always` is a broker that gets a relay even if no job uses it.

        With `is_alone=False` a resident of another process runs: then only `always` gets a relay, which does
        not publish.
        """
        self.context = context
        self.caller = caller
        self.tell = tell
        self.always = always
        self.is_alone = is_alone
        self._news: deque[Document] = deque()
        self._running: dict[str, _Thread] = {}
        self._ending: list[_Thread] = []
        self._states: dict[str, str] = {}
        self._is_back = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._due = 0.0

    def close(self) -> None:
        """End the threads. They are daemons: a thread that hangs in a connection ends with the process."""
        for key in list(self._running):
            self._end(key)
        deadline = time.monotonic() + _GOODBYE_SECONDS
        is_over = all([thread.join(deadline - time.monotonic()) for thread in self._ending])
        if is_over:
            os.close(self._read)
            os.close(self._write)

    def seconds_until_pass(self) -> float | None:
        """Return in how many seconds a pass is due because of the broker `always`; None if none is due.

        While that broker is not connected a pass is due every RECONCILE_POLL_INTERVAL, and one at once when
        it is connected again.
        """
        if self.always is None:
            return None
        if self._states.get(self.always.address) != CONNECTED:
            self._is_back = True
            return poll_seconds(self.context)
        is_back, self._is_back = self._is_back, False
        return 0.0 if is_back else None

    def is_needed(self) -> bool:
        """Tell whether the outbox has a row of the last hour; the resident does not stay for older ones."""
        since = self.context.now() - WORTH_SECONDS
        return self.context.registry.peek(
            lambda transaction: outbox.is_waiting_since(transaction, since), False
        )

    def due(self) -> float:
        """Return when the next tick is due, on the monotonic clock."""
        return self._due

    def handles(self) -> tuple[int, ...]:
        """Return the handle that is readable when a thread has news."""
        return (self._read,)

    def tick(self) -> str:
        """Pass on the threads' news, and ensure one thread for each broker in use; never end the resident."""
        self._due = time.monotonic() + _NET
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass
        while self._news:
            document = self._news.popleft()
            if "broker" in document:
                self._states[document["broker"]["address"]] = document["broker"]["state"]
            self.tell(document)
        none: dict[str, Broker] = {}
        since = self.context.now() - WORTH_SECONDS
        in_use = (
            self.context.registry.peek(lambda transaction: _in_use(transaction, since), none)
            if self.is_alone
            else none
        )
        if self.always is not None:
            in_use = {**in_use, _key(self.always): self.always}
        for key in self._running.keys() - in_use.keys():
            self._end(key)
        for key, broker in in_use.items():
            if self._is_missing(key):
                relay = Relay(
                    self.context.for_thread(), self.caller, broker, self._queue, publishes=self.is_alone
                )
                self._running[key] = _Thread(relay)
        return ""

    def _is_missing(self, key: str) -> bool:
        """Tell whether a broker needs a thread; do not restart at once a thread that ended by itself."""
        thread = self._running.get(key)
        if thread is None:
            return True
        if thread.is_alive() or time.monotonic() < thread.began + _NET:
            return False
        self._end(key)
        return True

    def _end(self, key: str) -> None:
        """Tell a thread to end. It may still have news, so `close` waits for it."""
        thread = self._running.pop(key)
        thread.end()
        self._ending = [*(ending for ending in self._ending if ending.is_alive()), thread]

    def _queue(self, document: Document) -> None:
        """Queue a document for the next tick; the threads call this."""
        self._news.append(document)
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")


class _Thread:
    """A thread that runs one relay."""

    def __init__(self, relay: Relay) -> None:
        self._read, self._write = os.pipe()
        self._relay = relay
        self.began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="mam-relay", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._relay.run(self._read)
        except Exception as error:
            # A thread has no caller that would see the exception.
            reported = error if isinstance(error, MamError) else Broken(f"a relay failed: {error!r}")
            self._relay.tell({"error": reported.as_json()["error"]})
        finally:
            os.close(self._read)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        """Tell the thread to end; call this once."""
        os.close(self._write)

    def join(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()


def poll_seconds(context: Context) -> float:
    """Return the seconds between passes without a broker: RECONCILE_POLL_INTERVAL, or 15."""
    try:
        seconds = float(context.environ.get("RECONCILE_POLL_INTERVAL") or _POLL)
    except ValueError:
        raise InvalidSettings("RECONCILE_POLL_INTERVAL is not a number of seconds") from None
    if not 0 < seconds <= 86_400:
        raise InvalidSettings("RECONCILE_POLL_INTERVAL is a number of seconds, more than 0 and at most a day")
    return seconds


def _in_use(transaction: Transaction, since: float) -> dict[str, Broker]:
    """Return the brokers of open jobs, and of jobs with something to publish or published since then.

    The latter keep a relay because a process that starts to wait after the end of a job asks for its log.
    """
    job_ids = jobs.open_ids(transaction) | {
        *outbox.waiting_jobs(transaction),
        *outbox.recent(transaction, since),
    }
    brokers = [rules.of_record(job.data) for job_id in job_ids if (job := jobs.find(transaction, job_id))]
    return {_key(broker): broker for broker in brokers if broker is not None}


def _key(broker: Broker) -> str:
    return repr(sorted(broker.as_json().items()))
