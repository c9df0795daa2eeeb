"""Processes by an identity that outlives their number.

A pid alone names nothing: it is handed to a stranger as soon as its owner is gone. Here a process is
(pid, start time, boot id), and every signal goes through a handle that is checked against that first.
"""

from __future__ import annotations

import os
import sys

from mam.core.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LINUX = sys.platform == "linux"
_boot: str | None = None


class Identity:
    """One process of one boot; equal only to itself, never to a later owner of its pid."""

    __slots__ = ("boot", "pid", "start")

    def __init__(self, pid: int, start: int, boot: str) -> None:
        """Take the pid, its start time (clock ticks on Linux, microseconds on macOS) and the boot id."""
        self.pid = pid
        self.start = start
        self.boot = boot

    def __eq__(self, other: object) -> bool:
        """Compare all three parts."""
        if not isinstance(other, Identity):
            return NotImplemented
        return self.pid == other.pid and self.start == other.start and self.boot == other.boot

    def __hash__(self) -> int:
        """Hash what differs between processes of one boot."""
        return hash((self.pid, self.start))

    def __repr__(self) -> str:
        """Show the parts, for a failing test or a log."""
        return f"Identity(pid={self.pid}, start={self.start}, boot={self.boot!r})"

    def as_json(self) -> dict[str, Any]:
        """Return the form that a record keeps."""
        return {"pid": self.pid, "start": self.start, "boot": self.boot}

    @classmethod
    def from_json(cls, document: Any) -> Identity | None:
        """Return the identity of a record, or None where the record is not one."""
        try:
            pid, start, boot = document["pid"], document["start"], document["boot"]
        except (KeyError, TypeError):
            return None
        if type(pid) is not int or type(start) is not int or not isinstance(boot, str) or pid <= 0:
            return None
        return cls(pid, start, boot)


class Stat:
    """What one look at a process tells; a zombie has ended and waits for its parent."""

    __slots__ = ("parent", "pid", "session", "start", "tty", "zombie")

    def __init__(
        self, pid: int, parent: int, tty: int, start: int, zombie: bool, *, session: int = 0
    ) -> None:
        """Take the values as the platform gives them; tty is a device number, 0 for none, as is session."""
        self.pid = pid
        self.parent = parent
        self.tty = tty
        self.start = start
        self.zombie = zombie
        self.session = session


def boot_id() -> str:
    """Return what names this boot of the machine; it is read once."""
    global _boot  # noqa: PLW0603  (a value that cannot change while this process lives)
    if _boot is None:
        if _LINUX:
            _boot = (_read("/proc/sys/kernel/random/boot_id") or b"").decode("ascii", "replace").strip()
        else:
            from mam.adapters.system import process_darwin

            _boot = process_darwin.boot_id()
    return _boot


def identify(pid: int) -> Identity | None:
    """Return the identity of a live process, or None if there is none or it is a zombie."""
    found = stat(pid)
    if found is None or found.zombie:
        return None
    return Identity(pid, found.start, boot_id())


def me() -> Identity:
    """Return the identity of this process."""
    found = identify(os.getpid())
    if found is None:
        raise RuntimeError("this process cannot see itself; is /proc mounted?")
    return found


def is_alive(identity: Identity) -> bool:
    """Tell whether that very process is still there; a zombie or a reused pid is not."""
    return identify(identity.pid) == identity


def runs(pid: int) -> bool | None:
    """Tell in one system call whether a process runs, as a zombie does not; None where that takes more.

    It says nothing about which process has the pid: for that there is is_alive.
    """
    try:
        os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return False if os.path.isdir("/proc/self") else None
    except OSError:
        return None
    return True


def start_of(pid: int) -> int | None:
    """Return the start time of a process, also of a zombie; None if it is not there."""
    found = stat(pid)
    return found.start if found else None


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None if the process is not there."""
    found = stat(pid)
    return found.parent if found else None


def ancestors(pid: int) -> list[Identity]:
    """Return the parent of a process, its parent, and so on; the process itself is not among them."""
    found: list[Identity] = []
    seen = {pid}
    child = stat(pid)
    while child is not None and child.parent > 0 and child.parent not in seen:
        seen.add(child.parent)
        child = stat(child.parent)
        if child is not None:
            found.append(Identity(child.pid, child.start, boot_id()))
    return found


def tree(root: Identity | int, tty: str | None = None) -> set[Identity]:
    """Return a process, its descendants by parent pid, and all processes on its terminal, in one pass.

    The terminal counts only while the root itself is alive on it: the kernel gives the number of a
    closed terminal to the next one that opens. A root that is gone has an empty tree.
    """
    pid = root if isinstance(root, int) else root.pid
    stats = {found.pid: found for found in all_stats()}
    top = stats.get(pid)
    if top is None or top.zombie or (isinstance(root, Identity) and top.start != root.start):
        return set()
    if isinstance(root, Identity) and root.boot != boot_id():
        return set()
    wanted = _descendants(pid, stats)
    if tty and top.tty and top.tty == device_of(tty):
        wanted.update(found.pid for found in stats.values() if found.tty == top.tty)
    boot = boot_id()
    return {Identity(one, stats[one].start, boot) for one in wanted if not stats[one].zombie}


def left_behind(leader: Identity) -> set[Identity]:
    """Return the processes that are still in the session of a leader that has ended.

    The kernel does not give the leader's pid away while its session has members. A leader of that pid
    that lives is either the one meant, which has not ended, or a stranger: then there are none.
    """
    stats = all_stats()
    boot = boot_id()
    if leader.boot != boot or any(one.pid == leader.pid and not one.zombie for one in stats):
        return set()
    return {
        Identity(one.pid, one.start, boot)
        for one in stats
        if one.session == leader.pid and not one.zombie and one.start >= leader.start
    }


def _descendants(pid: int, stats: dict[int, Stat]) -> set[int]:
    children: dict[int, list[int]] = {}
    for found in stats.values():
        children.setdefault(found.parent, []).append(found.pid)
    wanted = {pid}
    pending = [pid]
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in wanted:
                wanted.add(child)
                pending.append(child)
    return wanted


def signal(identity: Identity, signum: int) -> bool:
    """Send a signal to that very process; False if it is gone. It never reaches a later owner of the pid."""
    if sys.platform != "linux" or not hasattr(os, "pidfd_open"):
        return _signal_by_pid(identity, signum)
    import signal as signals

    try:
        handle = os.pidfd_open(identity.pid)
    except ProcessLookupError:
        return False
    except OSError:
        # A kernel older than 5.3, or a sandbox that forbids the call.
        return _signal_by_pid(identity, signum)
    try:
        if not is_alive(identity):
            return False
        signals.pidfd_send_signal(handle, signum)
    except ProcessLookupError:
        return False
    except PermissionError as cause:
        raise NotAllowed(f"process {identity.pid} belongs to somebody else") from cause
    finally:
        os.close(handle)
    return True


def _signal_by_pid(identity: Identity, signum: int) -> bool:
    if not is_alive(identity):
        return False
    try:
        os.kill(identity.pid, signum)
    except ProcessLookupError:
        return False
    except PermissionError as cause:
        raise NotAllowed(f"process {identity.pid} belongs to somebody else") from cause
    return True


def command_line(pid: int) -> list[str] | None:
    """Return the arguments of a process as they stand now, or None if they cannot be read."""
    if not _LINUX:
        from mam.adapters.system import process_darwin

        return process_darwin.command_line(pid)
    content = _read(f"/proc/{pid}/cmdline")
    if content is None:
        return None
    return [os.fsdecode(word) for word in content.removesuffix(b"\0").split(b"\0")] if content else []


def environment(pid: int) -> dict[str, str] | None:
    """Return the variables that a process was started with, or None if they cannot be read."""
    content = _read(f"/proc/{pid}/environ") if _LINUX else None
    if content is None:
        return None
    pairs = (os.fsdecode(one).partition("=") for one in content.split(b"\0") if b"=" in one)
    return {name: value for name, _, value in pairs}


def working_directory(pid: int) -> str | None:
    """Return the directory a process is in, or None if it cannot be read."""
    if not _LINUX:
        from mam.adapters.system import process_darwin

        return process_darwin.working_directory(pid)
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def children(pid: int) -> list[int]:
    """Return what the threads of a process started; nothing is known where there is no /proc."""
    threads = _names(f"/proc/{pid}/task")
    lists = (_read(f"/proc/{pid}/task/{thread}/children") or b"" for thread in threads)
    return [int(child) for numbers in lists for child in numbers.split()]


def open_files(pid: int) -> list[str]:
    """Return the paths of the files that a process has open; nothing is known where there is no /proc."""
    found = []
    for name in _names(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    return found


def has_open(pid: int, wanted: os.stat_result) -> bool | None:
    """Tell whether a process has a file open; None for a process that this user may not look into."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except PermissionError:
        return None
    except OSError:
        return False
    for name in names:
        try:
            if os.path.samestat(os.stat(f"{folder}/{name}"), wanted):
                return True
        except OSError:
            continue
    return False


def lockers(inode: int) -> set[int]:
    """Return the processes that hold a lock on a file of this number, on whatever file system."""
    found = set()
    for line in (_read("/proc/locks") or b"").decode("ascii", "replace").splitlines():
        # `1: FLOCK  ADVISORY  WRITE 4951 fe:00:15353553 0 EOF`; who waits for a lock has `->` in between.
        words = line.split()
        if len(words) == 8 and words[5].endswith(f":{inode}") and words[4].isdecimal():
            found.add(int(words[4]))
    return found


def device_of(tty: str) -> int:
    """Return the number of a terminal as `Stat.tty` gives it; 0 if there is no such terminal."""
    try:
        device = os.stat(tty).st_rdev
    except OSError:
        return 0
    if not _LINUX:
        return device
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)


def stat(pid: int) -> Stat | None:
    """Look at one process; a zombie is seen too. None if it is not there."""
    if not _LINUX:
        from mam.adapters.system import process_darwin

        row = process_darwin.stat(pid)
        return Stat(*row) if row else None
    content = _read(f"/proc/{pid}/stat")
    return _parse_stat(pid, content) if content else None


def all_stats() -> list[Stat]:
    """Look at every process, in one pass."""
    if not _LINUX:
        from mam.adapters.system import process_darwin

        return [Stat(*row) for row in process_darwin.all_stats()]
    found = (stat(pid) for pid in pids())
    return [one for one in found if one is not None]


def pids() -> list[int]:
    """Return the numbers of all processes."""
    if not _LINUX:
        from mam.adapters.system import process_darwin

        return process_darwin.pids()
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _parse_stat(pid: int, content: bytes) -> Stat | None:
    # The name is what the process calls itself, spaces and parentheses included: the last ')' ends it.
    fields = content[content.rfind(b")") + 1 :].split()
    try:
        return Stat(
            pid,
            int(fields[1]),
            int(fields[4]) & 0xFFFFFFFF,
            int(fields[19]),
            fields[0] in (b"Z", b"X", b"x"),
            session=int(fields[3]),
        )
    except (IndexError, ValueError):
        return None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _read(path: str) -> bytes | None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        chunks = []
        while chunk := os.read(handle, 65536):
            chunks.append(chunk)
        return b"".join(chunks)
    except OSError:
        return None
    finally:
        os.close(handle)
