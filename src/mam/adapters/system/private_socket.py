"""A private socket of this user: where it may lie, who listens, and who is at the other end.

The path of a socket has at most 107 bytes (103 on macOS), so it cannot lie below a root. Like tmux's, it
lies in a folder of this user in /tmp, whatever TMPDIR says: both ends must find the same place, and
agents start their servers with few variables.
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
    """Return the path of the socket that belongs to a folder, wherever that lies; nothing is made.

    A digest of the folder's path would load OpenSSL, which is larger than all the rest of a bridge.
    """
    try:
        facts = os.stat(of)
    except OSError as error:
        raise Unavailable(f"{of} cannot be found: {error.strerror}") from error
    return f"/tmp/mam-{os.geteuid()}/{facts.st_dev:x}-{facts.st_ino:x}.sock"  # noqa: S108  (checked before use)


def listen(path: str) -> socket.socket:
    """Listen there; what a dead process left is replaced. The caller holds a lock that says who may."""
    _make_folder(os.path.dirname(path))
    sweep(os.path.dirname(path))
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with suppress(FileNotFoundError):
            os.unlink(path)
        door.bind(path)
        os.chmod(path, 0o600)
        door.listen(_BACKLOG)
    except OSError as error:
        door.close()
        raise Unavailable(f"nobody can listen at {path}: {error.strerror}") from error
    door.setblocking(False)
    return door


def sweep(folder: str, *, older_than: float = 60.0) -> None:
    """Remove the sockets that killed processes left: those that the kernel knows no more.

    Only Linux lists what is bound; elsewhere they stay, and block nobody.
    """
    try:
        # In this order: a socket that is bound in between is not taken for one that was left.
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
    """Return a connection to who listens there; None if nobody does. It is a process of this user."""
    _check_folder(os.path.dirname(path))
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        line.connect(path)
        _pid, user = peer(line)
    except OSError:
        line.close()
        return None
    if user != os.geteuid():
        line.close()
        raise NotAllowed(f"{path} belongs to another user", hint="remove it")
    return line


def peer(line: socket.socket) -> tuple[int, int]:
    """Return the pid and the user of the process at the other end. Raises OSError."""
    if sys.platform == "darwin":
        # LOCAL_PEERPID and LOCAL_PEERCRED of <sys/un.h>: the second begins with a version and the user.
        pid = line.getsockopt(0, 2)
        user = struct.unpack_from("II", line.getsockopt(0, 1, 76))[1]
        return pid, user
    pid, user, _group = struct.unpack("3i", line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid, user


def _make_folder(folder: str) -> None:
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise Unavailable(f"{folder} cannot be made: {error.strerror}") from error
    _check_folder(folder)


def _check_folder(folder: str) -> None:
    """Refuse a folder that somebody else could have put there; one that is missing is nobody's."""
    try:
        facts = os.lstat(folder)
    except FileNotFoundError:
        return
    is_ours = stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
    if not is_ours or facts.st_mode & 0o077:
        raise NotAllowed(
            f"{folder} is not a private folder of this user", hint="remove it; mam makes its own"
        )
