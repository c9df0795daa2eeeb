"""The socket of a root's MCP server, and the connection of a client to it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from mam.adapters.system import private_socket
from mam.app.context import resident_start_and_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from mam.app.context.context import Context


def address(context: Context) -> str:
    """Return the path of the socket of a root's MCP server."""
    return private_socket.address(context.paths.state)


class Listener:
    """The listening socket. Only the resident opens it, because it holds the root's lock."""

    def __init__(self, context: Context) -> None:
        """Listen on the socket of the root."""
        # A spare descriptor: closing it makes room to accept and reject a client when none is left.
        self.path = address(context)
        self._socket = private_socket.listen(self.path)
        self._spare = os.open(os.devnull, os.O_RDONLY)

    def fileno(self) -> int:
        """Return the handle that is readable when a client connects."""
        return self._socket.fileno()

    def accept(self) -> socket | None:
        """Return the next client; None if no client waits, or no descriptor is left."""
        try:
            return self._socket.accept()[0]
        except (BlockingIOError, ConnectionAbortedError):
            return None
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._reject_client()
            return None

    def _reject_client(self) -> None:
        """No descriptor is left: accept and close one client, so that poll stops firing."""
        os.close(self._spare)
        try:
            with suppress(OSError):
                self._socket.accept()[0].close()
        finally:
            self._spare = os.open(os.devnull, os.O_RDONLY)

    def exists(self) -> bool:
        """Tell whether the socket's file still exists; something may have cleaned /tmp."""
        return os.path.exists(self.path)

    def close(self) -> None:
        """Stop listening, and remove the socket's file."""
        os.close(self._spare)
        self._socket.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def connect(context: Context) -> socket | None:
    """Return a connection to the MCP server of a root; None if no server listens."""
    return private_socket.connect(address(context))


def has_server(context: Context) -> bool:
    """Tell whether a resident serves this root, or the settings allow to start one."""
    if not context.paths.exists():
        return False
    return context.settings().resident != "off" or resident_start_and_lock.lock_holder(context) is not None
