"""Runs the MCP server in the client's own process, if no resident can serve it.

That is the case if the root has no registry yet, or the settings forbid a resident.
"""

from __future__ import annotations

import socket

from mam.surfaces.mcp.bridge import Bridge
from mam.surfaces.mcp.server_thread import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet_object import Fleet


def serve(fleet: Fleet, hello: dict[str, Any]) -> None:
    """Serve until the client is gone; both ends of the connection are in this process."""
    service = Service(fleet)

    def connect() -> socket.socket:
        client_end, server_end = socket.socketpair()
        service.add_client(server_end)
        return client_end

    Bridge(connect, lambda: None, hello, lambda: fleet.mcp.allowed(hello)).run()
    service.end()
