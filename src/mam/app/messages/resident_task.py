"""The resident task that delivers held messages, and corrects receipts whose proof comes late.

A proof may take seconds, and meanwhile the resident must notice a death and deliver to other sessions. So
threads do this work, each for one session at a time and with its own context. There are only a few threads.
Each message is typed by one of them, because a session is never given to two.
"""

from __future__ import annotations

import time
from threading import Lock, Thread

from mam.adapters.store.tables import messages
from mam.app.context import setting_aside
from mam.app.messages.delivery import deliver
from mam.app.messages.late_proof import correct_receipts
from mam.core.errors import Broken, MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

# Seconds until the next tick. The resident does not notice every end of a reason: some agents have no hooks.
_SOON, _LATER, _SELDOM = 1.0, 10.0, 3600.0
# Seconds between two looks for late proofs: a transcript that grows is read again by each of them.
_LOOK_SECONDS = 5.0
_MOST_THREADS = 8


class DeliveryTask:
    """A resident task: it delivers after each pass, and again while messages are held."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._lock = Lock()
        # The sessions that wait for a thread, in order, and those that have one.
        self._waiting: dict[str, None] = {}
        self._served: set[str] = set()
        self._threads = 0
        self._error: MamError | None = None
        self._next = 0.0
        self._next_look = 0.0
        self._wait = _SOON

    def due(self) -> float:
        """Return the time of the next tick: soon while messages are held, and later the longer that lasts."""
        return self._next

    def handles(self) -> tuple[int, ...]:
        """Return no handles to wait for: messages change the database, which the resident watches anyway."""
        return ()

    def is_needed(self) -> bool:
        """Return False: messages of ended sessions wait for a resume, and a resume starts a resident."""
        return False

    def tick(self) -> str:
        """Give each session with messages a thread, unless it has one; raise the error of an earlier one."""
        now = time.monotonic()
        nobody: list[str] = []
        to_deliver = self.context.registry.peek(messages.sessions_with_open, nobody)
        to_correct = self.context.registry.peek(messages.sessions_awaiting_proof, nobody)
        self._wait = min(_LATER, self._wait * 1.5) if to_deliver else _SOON
        self._next = now + (self._wait if to_deliver else _SELDOM)
        if to_correct and now >= self._next_look:
            self._next_look = now + _LOOK_SECONDS
        elif to_correct:
            # This pass may be the one that follows the proof.
            self._next = min(self._next, self._next_look)
            to_correct = []
        self._start([*to_deliver, *to_correct])
        error, self._error = self._error, None
        if error is not None:
            raise error
        return ""

    def _start(self, session_ids: list[str]) -> None:
        with self._lock:
            for session_id in session_ids:
                if session_id in self._served:
                    # Its thread may be about to end, without having seen a message that came just now.
                    self._next = min(self._next, time.monotonic() + _SOON)
                else:
                    self._waiting[session_id] = None
            missing = min(len(self._waiting), _MOST_THREADS - self._threads)
            self._threads += max(0, missing)
        for _ in range(missing):
            # A daemon thread may be killed while it types; then the message is treated as that of any
            # process that died while it typed.
            Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        """Serve sessions one after the other until none waits."""
        context = self.context.for_thread()
        session_id = None
        try:
            while (session_id := self._take(session_id)) is not None:
                try:
                    deliver(context, session_id)
                    correct_receipts(context, session_id)
                except Exception as error:
                    problem = f"messages cannot be delivered: {setting_aside.reason_of(error)}"
                    self._error = error if isinstance(error, MamError) else Broken(problem)
        except BaseException:
            with self._lock:
                self._threads -= 1
                self._served.discard(session_id or "")
            raise
        finally:
            context.close()

    def _take(self, done: str | None) -> str | None:
        """Return the next session that waits; None if there is none, and then the thread has ended."""
        with self._lock:
            self._served.discard(done or "")
            session_id = next(iter(self._waiting), None)
            if session_id is None:
                self._threads -= 1
            else:
                del self._waiting[session_id]
                self._served.add(session_id)
            return session_id
