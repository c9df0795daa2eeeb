"""The resident's part in messages: it delivers what is held, beside its watching.

A proof may take seconds, and a death must be noticed meanwhile: so it works in a thread of its own.
"""

from __future__ import annotations

import time
from threading import Thread

from mam.adapters.store.tables import messages
from mam.app.messages.delivery import deliver_all
from mam.core.errors import MamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

# Not every end of a reason wakes the resident: some agents have no hooks.
_SOON, _LATER, _SELDOM = 1.0, 10.0, 3600.0


class DeliveryTask:
    """Goes along with the resident: after each pass, and again while something is held."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._round: Thread | None = None
        self._failed: MamError | None = None
        self._next = 0.0
        self._wait = _SOON

    def due(self) -> float:
        """Soon while something is held, and later the longer that lasts."""
        return self._next

    def handles(self) -> tuple[int, ...]:
        """What happens to messages wakes the resident by the database."""
        return ()

    def is_needed(self) -> bool:
        """What is held for sessions that have ended waits for a resume, which starts a resident."""
        return False

    def tick(self) -> str:
        """Begin a round unless one is under way; raise what the last one failed with."""
        now = time.monotonic()
        if self._round is not None and self._round.is_alive():
            self._next = now + _SOON
            return ""
        is_open = self.context.registry.peek(messages.has_open, False)
        self._wait = min(_LATER, self._wait * 1.5) if is_open else _SOON
        self._next = now + (self._wait if is_open else _SELDOM)
        if is_open:
            # A daemon: what it leaves half done is settled like that of any sender that died.
            self._round = Thread(target=self._deliver, daemon=True)
            self._round.start()
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        return ""

    def _deliver(self) -> None:
        twin = self.context.for_thread()
        try:
            deliver_all(twin)
        except MamError as error:
            self._failed = error
        finally:
            twin.close()
