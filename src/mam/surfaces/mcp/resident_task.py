"""The server's place in the resident: it opens the door, and loads the server when somebody comes.

The resident's loop only accepts; everything else happens in a thread of the server's own.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from mam.app.agent_tools.listener import Listener
    from mam.app.api.fleet import Fleet
    from mam.surfaces.mcp.server_thread import Service

# Seconds between looks whether the socket is still there.
_LOOK = 60.0
# Seconds that a resident stays for a client that had it started.
_MOMENT = 10.0


class McpTask:
    """A companion of the resident."""

    def __init__(self, fleet: Fleet, *, awaits: bool = False) -> None:
        """Nothing is opened before the resident has its lock and ticks for the first time.

        One that was started for a client `awaits` it.
        """
        self._fleet = fleet
        self._until = time.monotonic() + _MOMENT if awaits else 0.0
        self._door: Listener | None = None
        self._due = 0.0
        self._service: Service | None = None

    def __enter__(self) -> McpTask:
        """Use as a context to leave no socket behind."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let nobody in any more, and let go of those who are."""
        if self._door is not None:
            self._door.close()
        if self._service is not None:
            self._service.end()

    def due(self) -> float:
        """Return when the socket is looked at again, and when a client that did not come is given up."""
        return min(self._due, self._until) if self._until > time.monotonic() else self._due

    def handles(self) -> list[int]:
        """Somebody at the door wakes the resident."""
        return [self._door.fileno()] if self._door is not None else []

    def is_needed(self) -> bool:
        """A client that is connected keeps its resident, and so does one that is expected."""
        return time.monotonic() < self._until or (self._service is not None and self._service.is_used())

    def tick(self) -> str:
        """Open the door, let in who stands there; the watching never ends by this."""
        self._due = time.monotonic() + _LOOK
        if self._door is not None and not self._door.is_there():
            self._door.close()
            self._door = None
        if self._door is None:
            self._door = self._fleet.mcp.listen()
        while (line := self._door.accept()) is not None:
            if self._service is None:
                from mam.surfaces.mcp.server_thread import Service

                self._service = Service(self._fleet)
            self._service.let_in(line)
        return ""
