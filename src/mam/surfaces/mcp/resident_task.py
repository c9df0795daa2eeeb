"""The resident task for the MCP server: it listens, and loads the server when a client connects or will.

The resident's loop only accepts connections. A thread of its own serves them.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from mam.app.api.fleet_object import Fleet
    from mam.app.api.mcp_connection import Listener
    from mam.surfaces.mcp.server_thread import Service

# Seconds between checks whether the socket's file still exists.
_LOOK = 60.0
# Seconds that a resident waits for the client that started it.
_MOMENT = 10.0


class McpTask:
    """The resident task for the MCP server."""

    def __init__(self, fleet: Fleet, *, awaits: bool = False) -> None:
        """Prepare the task; the first tick listens, because the resident holds its lock by then.

        `awaits` says that a client has started this resident and will connect.
        """
        self._fleet = fleet
        self._waits_until = time.monotonic() + _MOMENT if awaits else 0.0
        self._listener: Listener | None = None
        self._due = 0.0
        self._service: Service | None = self._start_service(load=True) if awaits else None

    def __enter__(self) -> McpTask:
        """Use as a context manager, which removes the socket at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening, and disconnect the clients."""
        if self._listener is not None:
            self._listener.close()
        if self._service is not None:
            self._service.end()

    def due(self) -> float:
        """Return when the next check of the socket, or the end of the wait for a client, is due."""
        return min(self._due, self._waits_until) if self._waits_until > time.monotonic() else self._due

    def handles(self) -> list[int]:
        """Return the handle that is readable when a client connects."""
        return [self._listener.fileno()] if self._listener is not None else []

    def is_needed(self) -> bool:
        """Tell whether a client is connected or expected: then the resident must keep running."""
        return time.monotonic() < self._waits_until or (self._service is not None and self._service.is_used())

    def tick(self) -> str:
        """Listen, and accept waiting clients; never end the resident."""
        self._due = time.monotonic() + _LOOK
        if self._listener is not None and not self._listener.exists():
            self._listener.close()
            self._listener = None
        if self._listener is None:
            self._listener = self._fleet.mcp.listen()
        while (connection := self._listener.accept()) is not None:
            if self._service is None:
                self._service = self._start_service()
            self._service.add_client(connection)
        return ""

    def _start_service(self, *, load: bool = False) -> Service:
        from mam.surfaces.mcp.server_thread import Service

        return Service(self._fleet, load=load)
