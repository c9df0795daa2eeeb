"""The process of a tmux server: finding it even if it does not answer, and ending it reliably."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
from time import monotonic

from mam.adapters.system.deadline import Deadline
from mam.core.errors import MamError, TerminalsDown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def listener(path: str) -> int | None:
    """Return the pid of the listener on the socket; the kernel knows it even for a stopped process."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        try:
            client.connect(os.fsencode(path))
            if sys.platform == "darwin":
                return int(client.getsockopt(0, 2))  # SOL_LOCAL, LOCAL_PEERPID
            credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return None
    return int(struct.unpack("3i", credentials)[0]) or None


def end(pid: int, ask: Callable[[], object], timeout: float) -> None:
    """Ask a server to end and wait for that; kill it if it does not. Raises TerminalsDown if that fails."""
    deadline = monotonic() + timeout
    handle = _handle(pid)
    try:
        try:
            ask()
        except MamError:
            deadline = 0.0  # the server does not answer, or ended before it could
        if _wait_for_end(pid, handle, deadline):
            return
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        if not _wait_for_end(pid, handle, monotonic() + 5):
            raise TerminalsDown(f"tmux server process {pid} cannot be ended")
    finally:
        if handle >= 0:
            os.close(handle)


def _handle(pid: int) -> int:
    if sys.platform == "linux":
        try:
            return os.pidfd_open(pid)
        except OSError:
            pass
    return -1


def _wait_for_end(pid: int, handle: int, deadline: float) -> bool:
    if handle >= 0:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        return bool(poller.poll(max(0.0, deadline - monotonic()) * 1000))
    until = Deadline(deadline - monotonic(), clock=monotonic)
    while True:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if not until.pause(0.01):
            return False
