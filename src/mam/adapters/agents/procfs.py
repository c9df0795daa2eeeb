"""What /proc says of a process; where there is none, nothing is known."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LARGEST = 256 * 1024
# Fields of /proc/PID/stat, counted after the name, which may hold anything.
_PARENT, _START = 1, 19
_DEEPEST = 100


def read(path: str) -> bytes:
    """Return the beginning of a file, nothing where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read(_LARGEST)
    except OSError:
        return b""


def listed(folder: str) -> list[str]:
    """Return the names in a folder, none where it cannot be read."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def pids() -> list[int]:
    """Return all processes."""
    return [int(name) for name in listed("/proc") if name.isdecimal()]


def start_of(pid: int) -> int | None:
    """Return the start time of a process, in its unit of /proc."""
    return _field(pid, _START)


def parent_of(pid: int) -> int | None:
    """Return the parent of a process."""
    return _field(pid, _PARENT)


def _field(pid: int, number: int) -> int | None:
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[number]) if len(fields) > number else None


def ancestors(pid: int) -> list[int]:
    """Return parent, grandparent and so on."""
    found: list[int] = []
    while pid > 1 and len(found) < _DEEPEST and (parent := parent_of(pid)) is not None:
        found.append(parent)
        pid = parent
    return found


def children(pid: int) -> list[int]:
    """Return what the threads of a process started."""
    threads = listed(f"/proc/{pid}/task")
    return [int(one) for thread in threads for one in read(f"/proc/{pid}/task/{thread}/children").split()]


def words(pid: int) -> list[bytes]:
    """Return the arguments of a process."""
    return read(f"/proc/{pid}/cmdline").split(b"\0")[:-1]


def folder_of(pid: int) -> str | None:
    """Return the working directory of a process."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def files(pid: int) -> Iterator[str]:
    """Yield the paths of the files that a process has open."""
    for name in listed(f"/proc/{pid}/fd"):
        try:
            yield os.readlink(f"/proc/{pid}/fd/{name}")
        except OSError:
            continue
