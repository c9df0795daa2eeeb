"""The thread in which clients are served: one event loop, one server, any number of clients.

The `mcp` package is loaded here, by the thread, when the first client comes.
"""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import suppress

from mam.app.agent_tools.connected_client import ConnectedClient
from mam.core.errors import MamError
from mam.surfaces.mcp.bridge import LONGEST_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from mam.app.api.fleet import Fleet
    from mam.surfaces.mcp.server import Server

_HELLO_SECONDS = 10.0
_END_SECONDS = 5.0


class Service:
    """Serves every client that is let in, until the resident ends."""

    def __init__(self, fleet: Fleet) -> None:
        """Start the thread."""
        self._fleet = fleet
        self._loop = asyncio.new_event_loop()
        self._server: Server | None = None
        self._clients: set[asyncio.Task[None]] = set()
        # Each is counted by one thread alone: who came by the resident's, who went by the server's.
        self._came = self._went = 0
        self._thread = threading.Thread(target=self._run, name="mam-mcp", daemon=True)
        self._thread.start()

    def is_used(self) -> bool:
        """Tell whether a client is connected."""
        return self._came > self._went

    def let_in(self, line: socket) -> None:
        """Serve one more client; called by the resident's own thread."""
        self._came += 1
        self._loop.call_soon_threadsafe(self._begin, line)

    def end(self) -> None:
        """Cut every client off."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            for task in self._clients:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*self._clients, return_exceptions=True))
            self._loop.close()

    def _begin(self, line: socket) -> None:
        task = self._loop.create_task(self._serve(line))
        self._clients.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._clients.discard(task)
        self._went += 1
        if not task.cancelled() and (error := task.exception()) is not None:
            # One client's trouble is nobody else's; what mam itself did wrong is in the answers.
            self._fleet.mcp.warn(f"a client was cut off: {error}")

    async def _serve(self, line: socket) -> None:
        line.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=line, limit=LONGEST_LINE)
        try:
            client = await self._welcome(reader, line)
            if client is not None:
                await self._serve_client(client, reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _welcome(self, reader: asyncio.StreamReader, line: socket) -> ConnectedClient | None:
        """Return who came in; None for one who does not say it in time, or is not let in."""
        try:
            said = json.loads(await asyncio.wait_for(reader.readline(), _HELLO_SECONDS))
            return self._fleet.mcp.client(line, said) if isinstance(said, dict) else None
        except (ValueError, OSError, TimeoutError, MamError):
            return None

    async def _serve_client(
        self, client: ConnectedClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        from mam.surfaces.mcp.server import Server

        if self._server is None:
            self._server = Server()
        with suppress(ConnectionError):
            await self._server.serve(client, reader, writer)
