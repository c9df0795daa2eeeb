"""The thread that serves MCP clients: one event loop, one server, any number of clients.

The thread loads the `mcp` package when the first client connects, because most residents never need it. A
resident that a client has started loads it at once.
"""

from __future__ import annotations

import asyncio
import gc
import json
import threading
from contextlib import suppress

from mam.core.errors import MamError
from mam.surfaces.mcp.bridge import LONGEST_LINE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from mam.app.api.fleet_object import Fleet
    from mam.app.api.mcp_connection import ConnectedClient
    from mam.surfaces.mcp.server import Server

_HELLO_SECONDS = 10.0
_END_SECONDS = 5.0


class Service:
    """Serves every client that `add_client` gets, until the resident ends."""

    def __init__(self, fleet: Fleet, *, load: bool = False) -> None:
        """Start the thread; `load` loads the server before the first client connects."""
        self._fleet = fleet
        self._loop = asyncio.new_event_loop()
        self._server: Server | None = None
        self._clients: set[asyncio.Task[None]] = set()
        # No lock is needed: only the resident's thread counts connects, and only this thread disconnects.
        self._connected = self._disconnected = 0
        self._thread = threading.Thread(target=self._run, name="mam-mcp", daemon=True)
        self._thread.start()
        if load:
            self._loop.call_soon_threadsafe(self._load)

    def is_used(self) -> bool:
        """Tell whether a client is connected."""
        return self._connected > self._disconnected

    def add_client(self, connection: socket) -> None:
        """Serve one more client; the resident's own thread calls this."""
        self._connected += 1
        self._loop.call_soon_threadsafe(self._begin, connection)

    def end(self) -> None:
        """Disconnect every client, and end the thread."""
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

    def _begin(self, connection: socket) -> None:
        task = self._loop.create_task(self._serve(connection))
        self._clients.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._clients.discard(task)
        self._disconnected += 1
        if not task.cancelled() and (error := task.exception()) is not None:
            # An error of one client must not end the server for the others.
            self._fleet.mcp.warn(f"the server disconnected a client: {error}")

    async def _serve(self, connection: socket) -> None:
        connection.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=LONGEST_LINE)
        try:
            client = await self._identify(reader, connection)
            if client is not None:
                await self._serve_client(client, reader, writer)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _identify(self, reader: asyncio.StreamReader, connection: socket) -> ConnectedClient | None:
        """Return the client; None if it does not introduce itself in time, or may not connect."""
        try:
            introduction = json.loads(await asyncio.wait_for(reader.readline(), _HELLO_SECONDS))
            return (
                self._fleet.mcp.client(connection, introduction) if isinstance(introduction, dict) else None
            )
        except (ValueError, RecursionError, OSError, TimeoutError, MamError):
            return None

    async def _serve_client(
        self, client: ConnectedClient, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):
            await self._load().serve(client, reader, writer)

    def _load(self) -> Server:
        """Return the server; load it first if necessary."""
        if self._server is None:
            # Collections of garbage make a quarter of the time in which the package is loaded.
            gc.disable()
            try:
                from mam.surfaces.mcp.server import Server

                self._server = Server()
            finally:
                gc.enable()
        return self._server
