"""The resident task that delivers held messages.

A proof may take seconds, and the resident must notice a death meanwhile. So a thread does the delivery.
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

# Seconds until the next tick. The resident does not notice every end of a reason: some agents have no hooks.
_SOON, _LATER, _SELDOM = 1.0, 10.0, 3600.0


class DeliveryTask:
    """A resident task: it delivers after each pass, and again while messages are held."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self._thread: Thread | None = None
        self._error: MamError | None = None
        self._next = 0.0
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
        """Start a delivery unless one is under way; raise the error of the last one."""
        now = time.monotonic()
        if self._thread is not None and self._thread.is_alive():
            self._next = now + _SOON
            return ""
        is_open = self.context.registry.peek(messages.has_open, False)
        self._wait = min(_LATER, self._wait * 1.5) if is_open else _SOON
        self._next = now + (self._wait if is_open else _SELDOM)
        if is_open:
            # A daemon thread may be killed while it types; then the message is treated as that of any
            # process that died while it typed.
            self._thread = Thread(target=self._deliver, daemon=True)
            self._thread.start()
        error, self._error = self._error, None
        if error is not None:
            raise error
        return ""

    def _deliver(self) -> None:
        context = self.context.for_thread()
        try:
            deliver_all(context)
        except MamError as error:
            self._error = error
        finally:
            context.close()
