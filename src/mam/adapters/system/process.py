"""Processes and their identities: which process lives, what it runs, and signals that reach only it.

A pid alone does not identify a process, because the kernel gives it to another process later. An identity is
(pid, start time, boot id), and mam compares it with the process behind a handle before every signal. In a
container the boot id is that of the machine, so its PID namespace is added to it.
"""

from __future__ import annotations

import os
import sys

from mam.core.errors import NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import Any

_LINUX = sys.platform == "linux"
_boot: str | None = None


class Identity:
    """The identity of one process; a later process with the same pid has another identity."""

    __slots__ = ("boot", "pid", "start")

    def __init__(self, pid: int, start: int, boot: str) -> None:
        """Store the pid, its start time (clock ticks on Linux, microseconds on macOS) and the boot id."""
        self.pid = pid
        self.start = start
        self.boot = boot

    def __eq__(self, other: object) -> bool:
        """Compare all three parts."""
        if not isinstance(other, Identity):
            return NotImplemented
        return self.pid == other.pid and self.start == other.start and self.boot == other.boot

    def __hash__(self) -> int:
        """Hash the parts that differ between processes of one boot."""
        return hash((self.pid, self.start))

    def __repr__(self) -> str:
        """Show the parts, for a failing test or a log."""
        return f"Identity(pid={self.pid}, start={self.start}, boot={self.boot!r})"

    def as_json(self) -> dict[str, Any]:
        """Return the form that a record keeps."""
        return {"pid": self.pid, "start": self.start, "boot": self.boot}

    @classmethod
    def from_json(cls, document: Any) -> Identity | None:
        """Return the identity in a record, or None if the record holds none."""
        try:
            pid, start, boot = document["pid"], document["start"], document["boot"]
        except (KeyError, TypeError):
            return None
        if type(pid) is not int or type(start) is not int or not isinstance(boot, str) or pid <= 0:
            return None
        return cls(pid, start, recorded_boot(boot))


class Stat:
    """The facts of one process. A zombie has ended, and its parent has not collected it yet."""

    __slots__ = ("parent", "pid", "session", "start", "stopped", "tty", "zombie")

    def __init__(
        self,
        pid: int,
        parent: int,
        tty: int,
        start: int,
        zombie: bool,
        *,
        session: int = 0,
        stopped: bool = False,
    ) -> None:
        """Store the platform's values; tty is a device number. 0 means no terminal or no known session.

        `stopped` says that a signal such as SIGSTOP keeps it from running; on macOS nobody knows.
        """
        self.pid = pid
        self.parent = parent
        self.tty = tty
        self.start = start
        self.zombie = zombie
        self.session = session
        self.stopped = stopped

    def identity(self) -> Identity:
        """Return the identity of the process."""
        return Identity(self.pid, self.start, boot_id())


def boot_id() -> str:
    """Return the id of this boot, and in a container also the PID namespace; it is read once."""
    global _boot  # noqa: PLW0603  (a value that cannot change while this process lives)
    if _boot is None:
        if _LINUX:
            from mam.adapters.system.machine import pid_namespace

            boot = (_read("/proc/sys/kernel/random/boot_id") or b"").decode("ascii", "replace").strip()
            namespace = pid_namespace()
            _boot = boot if namespace is None else f"{boot}/{namespace}"
        else:
            from mam.adapters.system import process_darwin

            _boot = process_darwin.boot_id()
    return _boot


def recorded_boot(boot: str) -> str:
    """Return a recorded boot id in today's form: in a container mam 0.1 recorded it without the namespace."""
    own = boot_id()
    return own if boot == own.partition("/")[0] else boot


def identify(pid: int) -> Identity | None:
    """Return the identity of a live process, or None if no process has the pid or it is a zombie."""
    facts = stat(pid)
    if facts is None or facts.zombie:
        return None
    return Identity(pid, facts.start, boot_id())


def me() -> Identity:
    """Return the identity of this process."""
    identity = identify(os.getpid())
    if identity is None:
        raise RuntimeError("this process cannot see itself; is /proc mounted?")
    return identity


def is_alive(identity: Identity) -> bool:
    """Tell whether exactly this process is alive; a zombie or a later owner of the pid is not.

    A process of another container is alive if this process can see it. A machine sees its containers.
    """
    if identity.boot == boot_id():
        return identify(identity.pid) == identity
    boot, _, namespace = identity.boot.partition("/")
    return boot == boot_id().partition("/")[0] and _is_alive_in(namespace, identity)


def _is_alive_in(namespace: str, identity: Identity) -> bool:
    """Tell whether a process of another PID namespace is alive, by the pids that it has in each namespace."""
    for pid in pids():
        try:
            is_there = os.readlink(f"/proc/{pid}/ns/pid") == f"pid:[{namespace}]"
        except OSError:
            continue
        if not is_there:
            continue
        facts = stat(pid)
        status = _read(f"/proc/{pid}/status") or b""
        pids_by_namespace = status.partition(b"\nNSpid:")[2].partition(b"\n")[0].split()
        is_it = facts is not None and not facts.zombie and facts.start == identity.start
        if is_it and pids_by_namespace[-1:] == [str(identity.pid).encode()]:
            return True
    return False


def runs(pid: int) -> bool | None:
    """Tell in one system call whether a process runs; a zombie does not. None means that this is unknown.

    The answer does not say which process has the pid; `is_alive` does.
    """
    try:
        os.readlink(f"/proc/{pid}/exe")
    except FileNotFoundError:
        return False if os.path.isdir("/proc/self") else None
    except OSError:
        return None
    return True


def start_of(pid: int) -> int | None:
    """Return the start time of a process, also of a zombie; None if it does not exist."""
    facts = stat(pid)
    return facts.start if facts else None


def parent_of(pid: int) -> int | None:
    """Return the parent of a process; None if the process does not exist."""
    facts = stat(pid)
    return facts.parent if facts else None


def ancestors(pid: int) -> list[Identity]:
    """Return the parent of a process, the parent of that, and so on, without the process itself."""
    return [facts.identity() for facts in lineage(pid)[1:]]


def lineage(pid: int) -> list[Stat]:
    """Return the facts of a process, of its parent, and so on; empty if the process does not exist."""
    line: list[Stat] = []
    visited: set[int] = set()
    while pid > 0 and pid not in visited:
        visited.add(pid)
        facts = stat(pid)
        if facts is None:
            break
        line.append(facts)
        pid = facts.parent
    return line


def _spares_none(_pid: int) -> bool:
    return False


def tree(
    root: Identity | int, tty: str | None = None, is_spared: Callable[[int], bool] = _spares_none
) -> set[Identity]:
    """Return a process, its descendants by parent pid, and all processes on its terminal, in one pass.

    A process that is spared is left out, with its descendants. The terminal counts only while the root
    itself is alive on it, because the kernel gives the number of a closed terminal to the next one that
    opens. If the root has ended, the tree is empty.
    """
    pid = root if isinstance(root, int) else root.pid
    stats = {facts.pid: facts for facts in all_stats()}
    top = stats.get(pid)
    if top is None or top.zombie or (isinstance(root, Identity) and top.start != root.start):
        return set()
    if isinstance(root, Identity) and root.boot != boot_id():
        return set()
    tops = {pid}
    if tty and top.tty and top.tty == device_of(tty):
        tops.update(facts.pid for facts in stats.values() if facts.tty == top.tty)
    return _identities(_descendants(tops, stats, is_spared), stats)


def family(members: Collection[Identity], is_spared: Callable[[int], bool] = _spares_none) -> set[Identity]:
    """Return the living ones of these processes, their descendants, and what is in a session of theirs.

    That is a terminal session which one of them leads, or led: the kernel does not reuse a leader's pid while
    its session has members. A process that is spared is left out, with its descendants.
    """
    stats = {facts.pid: facts for facts in all_stats()}
    boot = boot_id()
    starts = {identity.pid: identity.start for identity in members if identity.boot == boot}
    tops = set()
    for facts in stats.values():
        leader = stats.get(facts.session)
        is_led = starts.get(facts.session, facts.start + 1) <= facts.start and (
            leader is None or leader.start == starts[facts.session]
        )
        if is_led or starts.get(facts.pid) == facts.start:
            tops.add(facts.pid)
    return _identities(_descendants(tops, stats, is_spared), stats)


def _identities(members: set[int], stats: dict[int, Stat]) -> set[Identity]:
    boot = boot_id()
    return {Identity(member, stats[member].start, boot) for member in members if not stats[member].zombie}


def orphans_of(leader: Identity) -> set[Identity]:
    """Return the processes that are still in the terminal session of a leader that has ended.

    The kernel does not reuse the leader's pid while its session has members. So if a live process has that
    pid, it is either the leader itself or the session is empty; both mean that there are no orphans.
    """
    stats = all_stats()
    boot = boot_id()
    if leader.boot != boot or any(facts.pid == leader.pid and not facts.zombie for facts in stats):
        return set()
    return {
        Identity(facts.pid, facts.start, boot)
        for facts in stats
        if facts.session == leader.pid and not facts.zombie and facts.start >= leader.start
    }


def _descendants(tops: set[int], stats: dict[int, Stat], is_spared: Callable[[int], bool]) -> set[int]:
    children: dict[int, list[int]] = {}
    for facts in stats.values():
        children.setdefault(facts.parent, []).append(facts.pid)
    descendants = {pid for pid in tops if not is_spared(pid)}
    pending = list(descendants)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in descendants and not is_spared(child):
                descendants.add(child)
                pending.append(child)
    return descendants


def signal(identity: Identity, signum: int) -> bool:
    """Send a signal to exactly this process, never to a later owner of its pid; False if it has ended."""
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
        raise NotAllowed(f"process {identity.pid} belongs to another user") from cause
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
        raise NotAllowed(f"process {identity.pid} belongs to another user") from cause
    return True


def short_name(pid: int) -> str | None:
    """Return the name that a program gives to its process, of at most 15 bytes; None where none is known."""
    name = _read(f"/proc/{pid}/comm") if _LINUX else None
    return None if name is None else name.decode("utf-8", "replace").rstrip("\n")


def command_line(pid: int) -> list[str] | None:
    """Return the current arguments of a process, or None if they cannot be read."""
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
    pairs = (os.fsdecode(entry).partition("=") for entry in content.split(b"\0") if b"=" in entry)
    return {name: value for name, _, value in pairs}


def carriers(variable: str, since: int) -> dict[Identity, tuple[str, list[str]]]:
    """Return this user's processes that were started with a variable, with its value and their arguments.

    Only processes that started at `since` or later are looked at; none where there is no /proc.
    """
    found: dict[Identity, tuple[str, list[str]]] = {}
    prefix, user = b"\0" + os.fsencode(variable) + b"=", os.geteuid()
    for pid in pids() if _LINUX else ():
        facts = stat(pid)
        if facts is None or facts.zombie or facts.start < since or not _is_of(pid, user):
            continue
        _, is_there, rest = (b"\0" + (_read(f"/proc/{pid}/environ") or b"")).partition(prefix)
        if is_there:
            value = os.fsdecode(rest.partition(b"\0")[0])
            found[facts.identity()] = (value, command_line(pid) or [])
    return found


def is_own(pid: int) -> bool:
    """Tell whether a process is this user's; False where nobody can tell."""
    return _is_of(pid, os.geteuid())


def is_stopped(pid: int) -> bool:
    """Tell whether a process was stopped by a signal, and waits for SIGCONT; False where nobody can tell."""
    content = _read(f"/proc/{pid}/stat") or b""
    return content[content.rfind(b")") + 1 :].split()[:1] in ([b"T"], [b"t"])


def _is_of(pid: int, user: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == user
    except OSError:
        return False


def control_groups(pid: int) -> bytes | None:
    """Return the control groups of a process as Linux lists them; None if they cannot be read."""
    return _read(f"/proc/{pid}/cgroup")


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
    """Return the child processes of all threads of a process; an empty list where there is no /proc."""
    threads = _names(f"/proc/{pid}/task")
    lists = (_read(f"/proc/{pid}/task/{thread}/children") or b"" for thread in threads)
    return [int(child) for numbers in lists for child in numbers.split()]


def open_files(pid: int) -> list[str]:
    """Return the paths of the files that a process has open; an empty list where there is no /proc."""
    paths = []
    for name in _names(f"/proc/{pid}/fd"):
        try:
            paths.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    return paths


def has_open(pid: int, file: os.stat_result) -> bool | None:
    """Tell whether a process has a file open; None for a process that this user may not inspect."""
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except PermissionError:
        return None
    except OSError:
        return False
    for name in names:
        try:
            if os.path.samestat(os.stat(f"{folder}/{name}"), file):
                return True
        except OSError:
            continue
    return False


def lockers(inode: int) -> set[int]:
    """Return the processes that hold a lock on a file with this inode, on any file system."""
    holders = set()
    for line in (_read("/proc/locks") or b"").decode("ascii", "replace").splitlines():
        # `1: FLOCK  ADVISORY  WRITE 4951 fe:00:15353553 0 EOF`; a waiting process has `->` as another field.
        fields = line.split()
        if len(fields) == 8 and fields[5].endswith(f":{inode}") and fields[4].isdecimal():
            holders.add(int(fields[4]))
    return holders


def device_of(tty: str) -> int:
    """Return the number of a terminal in the form of `Stat.tty`; 0 if there is no such terminal."""
    try:
        device = os.stat(tty).st_rdev
    except OSError:
        return 0
    if not _LINUX:
        return device
    major, minor = os.major(device), os.minor(device)
    return (minor & 0xFF) | (major << 8) | ((minor & ~0xFF) << 12)


def stat(pid: int) -> Stat | None:
    """Return the facts of one process, also of a zombie; None if it does not exist."""
    if not _LINUX:
        from mam.adapters.system import process_darwin

        row = process_darwin.stat(pid)
        return Stat(*row) if row else None
    content = _read(f"/proc/{pid}/stat")
    return _parse_stat(pid, content) if content else None


def all_stats() -> list[Stat]:
    """Return the facts of every process."""
    if not _LINUX:
        from mam.adapters.system import process_darwin

        return [Stat(*row) for row in process_darwin.all_stats()]
    stats = (stat(pid) for pid in pids())
    return [facts for facts in stats if facts is not None]


def pids() -> list[int]:
    """Return the numbers of all processes."""
    if not _LINUX:
        from mam.adapters.system import process_darwin

        return process_darwin.pids()
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]


def _parse_stat(pid: int, content: bytes) -> Stat | None:
    # A process chooses its name, which may hold spaces and parentheses. The last ')' ends it.
    fields = content[content.rfind(b")") + 1 :].split()
    try:
        return Stat(
            pid,
            int(fields[1]),
            int(fields[4]) & 0xFFFFFFFF,
            int(fields[19]),
            fields[0] in (b"Z", b"X", b"x"),
            session=int(fields[3]),
            stopped=fields[0] == b"T",
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
