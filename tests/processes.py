"""Processes of a test: whether one runs, which ones belong to a home, and some that keep a core busy."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def is_running(pid: int) -> bool:
    """Tell whether a process runs; one that is dead and not yet collected does not."""
    if sys.platform != "linux":
        found = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        return bool(found.stdout.strip()) and not found.stdout.startswith("Z")
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def processes_of(home: Path) -> list[int]:
    """Return the pids of the processes whose HOME is this one, except this process."""
    wanted = b"HOME=" + os.fsencode(home)
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if int(entry.name) != os.getpid() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def end_processes_of(home: Path) -> None:
    """Kill, by pid, the processes whose HOME is this temporary one, except this process."""
    for pid in processes_of(home):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Have so many processes compute without an end; they end with this process at the latest."""
    program = "import os\nparent = os.getppid()\nwhile os.getppid() == parent: pass"
    loops = [subprocess.Popen([sys.executable, "-S", "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
