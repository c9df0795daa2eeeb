"""Processes on macOS, through psutil, with the same answers as /proc on Linux.

Not tested on a Mac. Imported only there, and psutil only inside the calls.
"""

from __future__ import annotations

# pid, parent, terminal, start, zombie: the arguments of process.Stat, which this file must not import.
Row = tuple[int, int, int, int, bool]


def boot_id() -> str:
    """Return the kernel's id for this boot. The boot time would not do, because it moves with the clock."""
    import os

    from mam.adapters.system import child_process

    command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
    return child_process.run(command, os.environ, timeout=5).out.decode("ascii", "replace").strip()


def stat(pid: int) -> Row | None:
    """Return the facts of one process; None if it does not exist."""
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            zombie = process.status() == psutil.STATUS_ZOMBIE
            start = round(process.create_time() * 1_000_000)
            return pid, process.ppid(), _tty(process), start, zombie
    except psutil.ZombieProcess:
        return pid, 0, 0, 0, True
    except psutil.Error:
        return None


def pids() -> list[int]:
    """Return the numbers of all processes."""
    import psutil

    return list(psutil.pids())


def all_stats() -> list[Row]:
    """Return the facts of every process that this user may inspect."""
    return [row for pid in pids() if (row := stat(pid)) is not None]


def command_line(pid: int) -> list[str] | None:
    """Return the arguments of a process, or None if they cannot be read."""
    import psutil

    try:
        return list(psutil.Process(pid).cmdline())
    except psutil.Error:
        return None


def working_directory(pid: int) -> str | None:
    """Return the directory a process is in, or None if it cannot be read."""
    import psutil

    try:
        return str(psutil.Process(pid).cwd())
    except psutil.Error:
        return None


def _tty(process: object) -> int:
    import os

    terminal = getattr(process, "terminal", lambda: None)()
    if not terminal:
        return 0
    try:
        return os.stat(terminal).st_rdev
    except OSError:
        return 0
