"""The machine and the PID namespace that this process runs in."""

from __future__ import annotations

import os
import sys

# The inode of the first PID namespace of every Linux machine (PROC_PID_INIT_INO).
INITIAL_NAMESPACE = 0xEFFFFFFC


def machine_id() -> str | None:
    """Return the id of this machine; None on macOS, and where an image of a container has none.

    Two machines that share a home have different ids. A host name would not do: it changes with the network,
    and with each new container.
    """
    if sys.platform != "linux":
        return None
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            # For any other encoding Python imports a module.
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(64).strip()
        except OSError:
            continue
        if len(text) == 32 and not text.strip("0123456789abcdef"):
            return text
    return None


def host_name() -> str:
    """Return the name of this machine for people."""
    return os.uname().nodename


def pid_namespace() -> int | None:
    """Return the PID namespace of this process; None for the first one, and where there are none."""
    try:
        link = os.readlink("/proc/self/ns/pid")
    except OSError:
        return None
    number = link.partition("[")[2].rstrip("]")
    return int(number) if number.isdecimal() and int(number) != INITIAL_NAMESPACE else None
