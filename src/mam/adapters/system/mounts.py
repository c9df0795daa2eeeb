"""Tells which file system a path lies on: SQLite and locks are not reliable on network file systems."""

from __future__ import annotations

import os
import sys

_NETWORK = frozenset(
    (
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "smb2",
        "afpfs",
        "webdav",
        "davfs",
        "ncpfs",
        "afs",
        "coda",
        "9p",
        "virtiofs",
        "vboxsf",
        "prl_fs",
        "vmhgfs",
        "drvfs",
        "ceph",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "orangefs",
        "ocfs2",
        "gfs2",
        "sshfs",
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.glusterfs",
        "fuse.vmhgfs-fuse",
        "fuse.gcsfuse",
        "fuse.davfs2",
        "fuse.smbnetfs",
        "macfuse",
    )
)


def network_filesystem(path: str) -> str | None:
    """Return the type of the shared or remote file system that path lies on, or None for a local one."""
    mounts = _darwin_mounts() if sys.platform == "darwin" else _linux_mounts()
    kind = filesystem_of(os.path.realpath(path), mounts)
    return kind if kind in _NETWORK else None


def filesystem_of(path: str, mounts: list[tuple[str, str]]) -> str | None:
    """Return the type of the mount that holds path: the longest mount point, and of equal ones the last."""
    best, kind = -1, None
    for point, mount_kind in mounts:
        holds = point in ("/", path) or path.startswith(point + "/")
        if holds and len(point) >= best:
            best, kind = len(point), mount_kind
    return kind


def parse_mountinfo(text: bytes) -> list[tuple[str, str]]:
    """Return (mount point, type) of each line of /proc/self/mountinfo, in order."""
    mounts = []
    for line in text.split(b"\n"):
        # A variable number of optional fields stands before the dash; the type is the first field after it.
        head, dash, tail = line.partition(b" - ")
        fields = head.split(b" ")
        if dash and len(fields) > 4:
            kind = tail.split(b" ", 1)[0].decode("ascii", "replace")
            mounts.append((os.fsdecode(_unoctal(fields[4])), kind))
    return mounts


def parse_mount_output(text: str) -> list[tuple[str, str]]:
    """Return (mount point, type) of each line of macOS's `mount`: `what on /point (type, options)`."""
    mounts = []
    for line in text.splitlines():
        head, opening, options = line.rpartition(" (")
        _, on, point = head.partition(" on ")
        if opening and on:
            mounts.append((point, options.rstrip(")").split(",")[0].strip()))
    return mounts


def _unoctal(field: bytes) -> bytes:
    if b"\\" not in field:
        return field
    import re

    return re.sub(rb"\\([0-3][0-7]{2})", lambda octal: bytes([int(octal[1], 8)]), field)


def _linux_mounts() -> list[tuple[str, str]]:
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            return parse_mountinfo(file.read())
    except OSError:
        return []


def _darwin_mounts() -> list[tuple[str, str]]:
    from mam.adapters.system import child_process

    try:
        answer = child_process.run(["/sbin/mount"], os.environ, timeout=5)
    except (OSError, child_process.OutOfTime):
        return []
    return parse_mount_output(os.fsdecode(answer.out))
