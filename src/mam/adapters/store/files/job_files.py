"""The files of a job: its token, its record, and its log in the two paths of the older mam.

All files except the token only show the database. Each line of a log has the number of its entry, so the
last line tells which entries are missing; an incomplete line after a crash is removed. mam writes the files
under one lock of their folder and does not flush them: after a power failure, the next entry completes them.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from contextlib import ExitStack, contextmanager, suppress

from mam.adapters.store import fifo_lock
from mam.adapters.store.database import errors
from mam.adapters.system import atomic_file
from mam.core.errors import NotAllowed, RegistryBusy
from mam.core.job_event import is_job_id
from mam.core.record_limits import LARGEST_NUMBER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from typing import Any, BinaryIO

    Document = dict[str, Any]

_TOKEN_BYTES = 32
_TAIL = 4096
_LONGEST_TOKEN = 4096
# The token is missing, or something else has its name. Any other failure may be temporary.
_SPOILED = (errno.ENOENT, errno.ELOOP, errno.EINVAL, errno.ENXIO, errno.EACCES)
# Another program may have written these files, so mam reads no more than this.
_LARGEST_RECORD, _LARGEST_LOG = 8 * 1024 * 1024, 64 * 1024 * 1024
# Seconds to wait while the queue of writers does not move.
_PATIENCE = 5.0
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


def token_file(folder: str, job_id: str) -> str:
    """Return the path of a job's token."""
    return os.path.join(folder, f"{job_id}.token")


def new_token(folder: str, job_id: str, token: str | None = None) -> str:
    """Write a token that only this user can read, and return it; keep a token that exists."""
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


def remove_token(folder: str, job_id: str) -> None:
    """Remove a token, if that is possible."""
    with suppress(OSError):
        os.unlink(token_file(folder, job_id))


def read_token(folder: str, job_id: str) -> str | None:
    """Return the token of a job, or None; refuse a token that other users could have read."""
    path = token_file(folder, job_id)
    try:
        token, is_private = _token_in(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotAllowed(f"{path} cannot be read: {error.strerror}") from error
    if not is_private:
        raise NotAllowed(f"other users can read {path}", hint=f"chmod 600 {path}, if nobody has read it")
    return token


def tokens(folder: str) -> dict[str, str]:
    """Return the tokens in a folder of jobs by id, without those that other users could have read."""
    found = {}
    with errors(folder):
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        for name in names:
            job_id, suffix = os.path.splitext(name)
            if suffix != ".token" or not is_job_id(job_id):
                continue
            try:
                token, is_private = _token_in(os.path.join(folder, name))
            except OSError as error:
                if error.errno not in _SPOILED:
                    raise
                continue
            if token and is_private:
                found[job_id] = token
    return found


def remove_shown(folder: str, job_id: str) -> None:
    """Remove the record and the log of a job, which only show the database."""
    for ending in (".json", ".events.log"):
        atomic_file.discard(os.path.join(folder, f"{job_id}{ending}"))


def signing_token(folder: str, job_id: str) -> str:
    """Return the token for mam's own events, which never fails because of a bad token.

    mam has to report that a session was stopped or that time ran out. A token that other users could have
    read still counts, because the receivers know it. For a lost or damaged token this returns a random one,
    which nobody knows and which is not stored.
    """
    import secrets

    path = token_file(folder, job_id)
    with errors(path):
        try:
            token, _is_private = _token_in(path)
        except OSError as error:
            if error.errno not in _SPOILED:
                raise
            token = None
    return token or secrets.token_hex(_TOKEN_BYTES)


def _token_in(path: str) -> tuple[str | None, bool]:
    """Return the token in a file (None if it is not one), and whether only this user can read the file."""
    with open_plain(path) as file:
        facts, text = os.fstat(file.fileno()), file.read(_LONGEST_TOKEN)
    is_private = facts.st_uid == os.geteuid() and not facts.st_mode & 0o077
    return (text.decode().strip() or None) if text.isascii() else None, is_private


def open_plain(path: str) -> BinaryIO:
    """Open a file for reading without waiting; raise OSError for a link, a pipe or a folder."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
    try:
        _check_plain(handle, path)
    except OSError:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def _check_plain(handle: int, path: str) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", path)


def make_folder(folder: str) -> None:
    """Create a folder that is private to the user; refuse a symbolic link."""
    with errors(folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.path.islink(folder):
        raise NotAllowed(f"{folder} is a symbolic link", hint="remove it; mam creates its own")


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Hold the lock of a folder of jobs; the kernel releases it when the writer dies.

    Raises RegistryBusy if a live writer does not release it: a committed change must not wait for that.
    """
    make_folder(folder)
    path = os.path.join(folder, ".lock")
    with ExitStack() as stack:
        with errors(path):
            try:
                stack.enter_context(fifo_lock.hold(path, _PATIENCE))
            except fifo_lock.QueueStuck:
                raise RegistryBusy(f"{path} is held by another process") from None
        yield


def replace(path: str, document: Document) -> None:
    """Write a document completely or not at all."""
    content = json.dumps(document, indent=2, ensure_ascii=True) + "\n"
    with errors(path):
        atomic_file.replace(path, content.encode("ascii"), beside=f"{path}.new")


def last_number(path: str) -> int:
    """Return the number of a log's last line, and remove an incomplete line after it. 0 without a log."""
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
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | _FLAGS, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            _check_plain(handle, path)
            file.write("".join(json.dumps(document, sort_keys=True) + "\n" for document in documents))


def read_record(path: str) -> Any:
    """Return the content of a record's file, or None if it cannot be read."""
    try:
        with open_plain(path) as file:
            return json.loads(file.read(_LARGEST_RECORD))
    except (OSError, ValueError, RecursionError):
        return None


def tail(path: str, longest: int) -> str:
    """Return the end of a text file, or an empty text without a file."""
    try:
        with open_plain(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - longest))
            return file.read(longest).decode("utf-8", "replace").strip()
    except OSError:
        return ""


def read_log(path: str) -> list[Document]:
    """Return the readable lines of a log."""
    try:
        with open_plain(path) as file:
            lines = file.read(_LARGEST_LOG).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    documents = []
    for line in lines:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            documents.append(document)
    return documents


def lines_after(path: str, number: int) -> Iterator[Document]:
    """Yield the readable lines of a log behind an entry, one at a time: a log may be long."""
    try:
        with open_plain(path) as file:
            for line in file:
                if _number(line) > number:
                    yield json.loads(line)
    except OSError:
        return


def record_ids(folder: str) -> list[str]:
    """Return the ids of the jobs that have a record in a folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name.removesuffix(".json") for name in names if name.endswith(".json"))


def _last_line(file: FileIO, size: int) -> tuple[int, bytes]:
    """Return where the last complete line of a file ends, and the line."""
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
    except (ValueError, AttributeError, RecursionError):
        return 0
    return number if type(number) is int and 0 <= number < LARGEST_NUMBER else 0
