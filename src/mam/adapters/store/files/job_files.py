"""The files of a job: its token, its record, and its log in the two places where the original keeps them.

All but the token are projections. Each line of a log has the number of its entry, so what is missing is
found by reading the last line; a half line that a crash left is cut off. They are written under one lock of
their folder and not flushed: what a power failure takes, the next entry brings back.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import ExitStack, contextmanager

from mam.adapters.store import fifo_lock
from mam.adapters.store.database import errors
from mam.adapters.system import atomic_file
from mam.core.errors import NotAllowed, RegistryBusy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any, BinaryIO

    Document = dict[str, Any]

_TOKEN_BYTES = 32
_TAIL = 4096
_LONGEST_TOKEN = 4096
# There is no token, or something else in its place; any other failure may be over in a moment.
_SPOILED = (errno.ENOENT, errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EACCES)
# More is read of no file that somebody else may have put there.
_LARGEST_RECORD, _LARGEST_LOG = 8 * 1024 * 1024, 64 * 1024 * 1024
# Seconds to wait while no writer takes its turn.
_PATIENCE = 5.0
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


def token_file(folder: str, job_id: str) -> str:
    """Return where the token of a job lies."""
    return os.path.join(folder, f"{job_id}.token")


def new_token(folder: str, job_id: str, token: str | None = None) -> str:
    """Keep a token for a job, readable by this user alone; return it. One that is there stays."""
    make_folder(folder)
    path = token_file(folder, job_id)
    import secrets

    with errors(path):
        text = token or secrets.token_hex(_TOKEN_BYTES)
        try:
            atomic_file.create(path, text.encode("ascii"), flushed=True)
        except FileExistsError:
            return read_token(folder, job_id) or ""
    return text


def read_token(folder: str, job_id: str) -> str | None:
    """Return the token of a job, or None where there is none; refuse one that others could have read."""
    path = token_file(folder, job_id)
    try:
        found, is_private = _token_in(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotAllowed(f"{path} cannot be read: {error.strerror}") from error
    if not is_private:
        raise NotAllowed(f"{path} is open to others", hint=f"chmod 600 {path}, if nobody read it")
    return found


def own_token(folder: str, job_id: str) -> str:
    """Return what mam itself signs with, whatever became of a token: a session can be stopped, a time ends.

    One that others could have read is still the one that listeners know. Nobody knows the one that stands
    in for a token that is lost or damaged, and it is not kept.
    """
    import secrets

    path = token_file(folder, job_id)
    with errors(path):
        try:
            found, _is_private = _token_in(path)
        except OSError as error:
            if error.errno not in _SPOILED:
                raise
            found = None
    return found or secrets.token_hex(_TOKEN_BYTES)


def _token_in(path: str) -> tuple[str | None, bool]:
    """Return what a file holds, and whether nobody else could have read it; nothing for what is no token."""
    with _plain(path) as file:
        facts, text = os.fstat(file.fileno()), file.read(_LONGEST_TOKEN)
    is_private = facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
    return (text.decode().strip() or None) if text.isascii() else None, is_private


def _plain(path: str) -> BinaryIO:
    """Open a file to read it; raises OSError for a link, a pipe or a folder in its place, and never waits."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "it is not a plain file", path)
    return os.fdopen(handle, "rb")


def make_folder(folder: str) -> None:
    """Make a folder of ours, private to the user; a link is refused."""
    with errors(folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.path.islink(folder):
        raise NotAllowed(f"{folder} is a symbolic link", hint="remove it; mam makes its own")


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Write alone into a folder of jobs; the kernel lets go of it when the writer dies.

    Raises RegistryBusy for a writer that lives and does not: what is committed already must not wait for it.
    """
    make_folder(folder)
    path = os.path.join(folder, ".lock")
    with ExitStack() as stack:
        with errors(path):
            try:
                stack.enter_context(fifo_lock.hold(path, _PATIENCE))
            except fifo_lock.StandsStill:
                raise RegistryBusy(f"{path} is held by another process") from None
        yield


def replace(path: str, document: Document) -> None:
    """Write a document under its name at once, or not at all."""
    content = json.dumps(document, indent=2, ensure_ascii=True) + "\n"
    with errors(path):
        atomic_file.replace(path, content.encode("ascii"), beside=f"{path}.new")


def last_number(path: str) -> int:
    """Return the number of a log's last line; a half line behind it is cut off. 0 for no log."""
    with errors(path):
        try:
            handle = os.open(path, os.O_RDWR | _FLAGS)
        except FileNotFoundError:
            return 0
        with os.fdopen(handle, "r+b", buffering=0) as file:
            size = file.seek(0, os.SEEK_END)
            ends, line = _last_line(file, size)
            if ends < size:
                file.truncate(ends)
    return _number(line)


def append(path: str, documents: list[Document]) -> None:
    """Add lines to a log."""
    if not documents:
        return
    with errors(path):
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | _FLAGS, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("".join(json.dumps(one, sort_keys=True) + "\n" for one in documents))


def read_record(path: str) -> Any:
    """Return what a record's file says, or None where it cannot be read as one."""
    try:
        with _plain(path) as file:
            return json.loads(file.read(_LARGEST_RECORD))
    except (OSError, ValueError, RecursionError):
        return None


def tail(path: str, longest: int) -> str:
    """Return the end of a text file, or nothing where there is none."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - longest))
            return file.read(longest).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def read_log(path: str) -> list[Document]:
    """Return the lines of a log that can be read; none where there is no log."""
    try:
        with _plain(path) as file:
            lines = file.read(_LARGEST_LOG).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            found.append(document)
    return found


def record_ids(folder: str) -> list[str]:
    """Return the ids of the jobs that have a record in a folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))


def _last_line(file: FileIO, size: int) -> tuple[int, bytes]:
    """Return where the last whole line of a file ends, and the line."""
    room = _TAIL
    while True:
        start = max(0, size - room)
        file.seek(start)
        text = file.read(size - start)
        ends = text.rfind(b"\n") + 1
        begins = text.rfind(b"\n", 0, max(0, ends - 1)) + 1
        if (ends and begins) or not start:
            return start + ends, text[begins:ends]
        room *= 16


def _number(line: bytes) -> int:
    try:
        number = json.loads(line).get("number")
    except (ValueError, AttributeError):
        return 0
    return number if type(number) is int else 0
