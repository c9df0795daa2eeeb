"""The brokers that a root's jobs name, each kept up in a thread of its own beside the resident.

A broker that does not answer makes nobody wait: the thread has its own connection to the database, and
works on it as another process would.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque

from mam.adapters.store.tables import jobs, outbox
from mam.app.brokers.relay import CONNECTED, Relay
from mam.core import broker as rules
from mam.core.errors import Broken, InvalidSettings, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.broker import Broker
    from mam.core.caller import Caller

    Document = dict[str, Any]

_NET, _POLL = 60.0, 15.0
_WORTH_SECONDS = 3600.0
_GOODBYE_SECONDS = 0.5


class RelayPool:
    """Goes along with a resident."""

    def __init__(
        self,
        context: Context,
        caller: Caller,
        tell: Callable[[Document], None],
        *,
        always: Broker | None = None,
        is_alone: bool = True,
    ) -> None:
        """`always` is listened to even if no job names it; beside a resident that is all there is to do."""
        self.context = context
        self.caller = caller
        self.tell = tell
        self.always = always
        self.is_alone = is_alone
        self._told: deque[Document] = deque()
        self._running: dict[str, _Thread] = {}
        self._ending: list[_Thread] = []
        self._states: dict[str, str] = {}
        self._is_back = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._due = 0.0

    def close(self) -> None:
        """End the threads; one that hangs in a connection ends with the process."""
        for key in list(self._running):
            self._end(key)
        deadline = time.monotonic() + _GOODBYE_SECONDS
        is_over = all([one.join(deadline - time.monotonic()) for one in self._ending])
        if is_over:
            os.close(self._read)
            os.close(self._write)

    def next_look(self) -> float | None:
        """Return in how many seconds the root is to be looked at for want of the broker that is listened to.

        While it cannot be heard that is every RECONCILE_POLL_INTERVAL, and at once when it can be again.
        """
        if self.always is None:
            return None
        if self._states.get(self.always.address) != CONNECTED:
            self._is_back = True
            return poll_seconds(self.context)
        is_back, self._is_back = self._is_back, False
        return 0.0 if is_back else None

    def is_needed(self) -> bool:
        """Tell whether something is to be published; what a broker does not take for an hour can wait."""
        since = self.context.now() - _WORTH_SECONDS
        return self.context.registry.peek(lambda draft: outbox.is_waiting_since(draft, since), False)

    def due(self) -> float:
        """Return when the next tick is wanted, on the monotonic clock."""
        return self._due

    def handles(self) -> tuple[int, ...]:
        """What can be read when a thread has something to tell."""
        return (self._read,)

    def tick(self) -> str:
        """Tell what the threads heard, and see that each broker in use has one. Never ends the watching."""
        self._due = time.monotonic() + _NET
        with contextlib.suppress(BlockingIOError):
            while os.read(self._read, 4096):
                pass
        while self._told:
            document = self._told.popleft()
            if "broker" in document:
                self._states[document["broker"]["address"]] = document["broker"]["state"]
            self.tell(document)
        none: dict[str, Broker] = {}
        since = self.context.now() - _WORTH_SECONDS
        wanted = (
            self.context.registry.peek(lambda draft: _in_use(draft, since), none) if self.is_alone else none
        )
        if self.always is not None:
            wanted = {**wanted, _key(self.always): self.always}
        for key in self._running.keys() - wanted.keys():
            self._end(key)
        for key, broker in wanted.items():
            if self._is_missing(key):
                relay = Relay(
                    self.context.for_thread(), self.caller, broker, self._hear, publishes=self.is_alone
                )
                self._running[key] = _Thread(relay)
        return ""

    def _is_missing(self, key: str) -> bool:
        """Tell whether a broker needs a thread; one that ended by itself is not started again at once."""
        one = self._running.get(key)
        if one is None:
            return True
        if one.is_alive() or time.monotonic() < one.began + _NET:
            return False
        self._end(key)
        return True

    def _end(self, key: str) -> None:
        """Tell a thread to end. It may still have something to say, so `close` waits for it."""
        one = self._running.pop(key)
        one.end()
        self._ending = [*(other for other in self._ending if other.is_alive()), one]

    def _hear(self, document: Document) -> None:
        """Called by the threads."""
        self._told.append(document)
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")


class _Thread:
    """A relay at work."""

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
            # Nobody else would hear of it: a thread has no caller.
            ours = error if isinstance(error, MamError) else Broken(f"a relay failed: {error!r}")
            self._relay.tell({"error": ours.as_json()["error"]})
        finally:
            os.close(self._read)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        """Tell it to end; once."""
        os.close(self._write)

    def join(self, seconds: float) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()


def poll_seconds(context: Context) -> float:
    """Return how often to look where nobody tells: RECONCILE_POLL_INTERVAL in seconds, or 15."""
    try:
        seconds = float(context.environ.get("RECONCILE_POLL_INTERVAL") or _POLL)
    except ValueError:
        raise InvalidSettings("RECONCILE_POLL_INTERVAL is not a number of seconds") from None
    if not 0 < seconds <= 86_400:
        raise InvalidSettings("RECONCILE_POLL_INTERVAL is a number of seconds, more than 0 and at most a day")
    return seconds


def _in_use(draft: Transaction, since: float) -> dict[str, Broker]:
    """Return the brokers of open jobs, and of those of which something is to be published or was since then.

    Who begins to wait after the end asks for what was before it.
    """
    wanted = jobs.open_ids(draft) | {*outbox.waiting_jobs(draft), *outbox.recent(draft, since)}
    found = [rules.of_record(job.data) for job_id in wanted if (job := jobs.find(draft, job_id))]
    return {_key(broker): broker for broker in found if broker is not None}


def _key(broker: Broker) -> str:
    return repr(sorted(broker.as_json().items()))
