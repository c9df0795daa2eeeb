"""The socket on which the MCP server of a root listens, and how a client connects to it."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from mam.adapters.system import private_socket
from mam.app.context import start_resident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket

    from mam.app.context.context import Context


def address(context: Context) -> str:
    """Return the socket of a root's server."""
    return private_socket.address(context.paths.state)


class Listener:
    """Where this root's server listens; only the resident has it, who holds the root's lock."""

    def __init__(self, context: Context) -> None:
        """Listen."""
        self.path = address(context)
        self._socket = private_socket.listen(self.path)
        self._spare = os.open(os.devnull, os.O_RDONLY)

    def fileno(self) -> int:
        """Return what can be read when a client connects."""
        return self._socket.fileno()

    def accept(self) -> socket | None:
        """Return the next client; None if there is none, or no descriptor is left for one."""
        try:
            return self._socket.accept()[0]
        except (BlockingIOError, ConnectionAbortedError):
            return None
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._turn_away()
            return None

    def _turn_away(self) -> None:
        """No descriptor is left: accept and close one client, so that poll stops firing."""
        os.close(self._spare)
        try:
            with suppress(OSError):
                self._socket.accept()[0].close()
        finally:
            self._spare = os.open(os.devnull, os.O_RDONLY)

    def is_there(self) -> bool:
        """Tell whether it can still be found; somebody may have cleaned /tmp."""
        return os.path.exists(self.path)

    def close(self) -> None:
        """Listen no longer."""
        os.close(self._spare)
        self._socket.close()
        with suppress(FileNotFoundError):
            os.unlink(self.path)


def enter(context: Context) -> socket | None:
    """Return a connection to the server of a root; None if none listens, or not yet."""
    return private_socket.connect(address(context))


def is_hosted(context: Context) -> bool:
    """Tell whether a resident serves this root, or may be started to."""
    if not context.paths.exists():
        return False
    return context.settings().resident != "off" or start_resident.lock(context).holder() is not None
