"""The server in the client's own process: where there is no registry yet, or no resident by the settings."""

from __future__ import annotations

import socket

from mam.surfaces.mcp.bridge import Bridge
from mam.surfaces.mcp.server_thread import Service

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.api.fleet import Fleet


def serve(fleet: Fleet, hello: dict[str, Any]) -> None:
    """Serve until the client is gone; both ends of the line are in this process."""
    service = Service(fleet)

    def connect() -> socket.socket:
        ours, theirs = socket.socketpair()
        service.let_in(theirs)
        return ours

    Bridge(connect, lambda: None, hello).run()
    service.end()
