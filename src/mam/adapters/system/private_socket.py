"""The private socket of a user for one folder: its path, listening, connecting, and the peer's identity.

The path of a socket has at most 107 bytes (103 on macOS), so it cannot lie below a root. Like tmux's socket,
it lies in a folder of this user in /tmp. TMPDIR is ignored: both ends must find the same path, and agents
start their servers with few environment variables.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
import time
from contextlib import suppress

from mam.core.errors import NotAllowed, Unavailable

_BACKLOG = 64


def address(of: str) -> str:
    """Return the path of the socket that belongs to a folder; create nothing.

    The name is made of device and inode, because a digest would load OpenSSL, which uses more memory than
    all the rest of a bridge process.
    """
    try:
        facts = os.stat(of)
    except OSError as error:
        raise Unavailable(f"{of} cannot be found: {error.strerror}") from error
    return f"/tmp/mam-{os.geteuid()}/{facts.st_dev:x}-{facts.st_ino:x}.sock"  # noqa: S108  (checked before use)


def listen(path: str) -> socket.socket:
    """Listen at path, replacing the socket of a dead process. The caller holds the lock of the owner."""
    _make_folder(os.path.dirname(path))
    remove_dead_sockets(os.path.dirname(path))
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)
        listener.bind(path)
        os.chmod(path, 0o600)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise Unavailable(f"mam cannot listen at {path}: {error.strerror}") from error
    listener.setblocking(False)
    return listener


def remove_dead_sockets(folder: str, *, older_than: float = 60.0) -> None:
    """Remove the sockets of killed processes: those that the kernel does not list as bound.

    Only Linux has such a list. Elsewhere the files stay and do no harm.
    """
    try:
        # Names first: a socket that is bound between the two reads must not look abandoned.
        names = os.listdir(folder)
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            bound = {line.rstrip("\n").rpartition(" ")[2] for line in file}
    except OSError:
        return
    for path in (os.path.join(folder, name) for name in names):
        with suppress(OSError):
            if path not in bound and time.time() - os.lstat(path).st_mtime > older_than:
                os.unlink(path)


def connect(path: str) -> socket.socket | None:
    """Return a connection to the listener at path, or None. Raises NotAllowed for another user's listener."""
    _check_folder(os.path.dirname(path))
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(path)
        _pid, user = peer(connection)
    except OSError:
        connection.close()
        return None
    if user != os.geteuid():
        connection.close()
        raise NotAllowed(f"{path} belongs to another user", hint="remove it")
    return connection


def peer(connection: socket.socket) -> tuple[int, int]:
    """Return the pid and the user of the process at the other end. Raises OSError."""
    if sys.platform == "darwin":
        # LOCAL_PEERPID and LOCAL_PEERCRED of <sys/un.h>; the second begins with a version and the user id.
        pid = connection.getsockopt(0, 2)
        user = struct.unpack_from("II", connection.getsockopt(0, 1, 76))[1]
        return pid, user
    pid, user, _group = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, user


def _make_folder(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise Unavailable(f"mam cannot create {folder}: {error.strerror}") from error
    _check_folder(folder)


def _check_folder(folder: str) -> None:
    """Refuse a folder that another user may have created; a missing folder is fine."""
    try:
        facts = os.lstat(folder)
    except FileNotFoundError:
        return
    is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
    if not is_ours or facts.st_mode & 0o077:
        raise NotAllowed(
            f"{folder} is not a private folder of this user", hint="remove it; mam creates its own"
        )
