"""The launch file brings argv and environment into a pane without passing them through tmux.

tmux would interpret them (`#(…)`, a final `;`), show them in `ps`, cut them at 16 KB and mix in its own
server's environment. So mam writes them into a file that only its owner can read. The pane runs launcher.py,
which reads the file, deletes it and executes the program.
"""

from __future__ import annotations

import os
import sys

from mam.adapters.system import atomic_file
from mam.core.errors import DiskFull, InvalidName, ReadOnly, Usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAGIC = b"mam-launch-1"
# The folder of a root's launch files, and how their names end.
FOLDER, SUFFIX = "launch", ".launch"
_ID = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
_NO_SPACE = (28, 122, 69)  # ENOSPC; EDQUOT on Linux and on macOS


def write_launch(
    directory: str,
    launch_id: str,
    *,
    argv: list[str],
    env: Mapping[str, str],
    cwd: str,
    umask: int | None = None,
) -> str:
    """Write what to run into a new 0600 file of an existing directory, and return its path.

    argv[0] is the full path of the program. Without umask the program has the umask of the tmux server.
    Raises Usage for values that no process can get (a NUL, a relative program, a variable without a name),
    InvalidName, DiskFull, ReadOnly. Never overwrites a file.
    """
    if not launch_id or launch_id.strip(_ID):
        raise InvalidName(f"not a launch id: {launch_id}")
    content = encode_launch(argv, env, cwd, umask)
    path = os.path.join(os.path.abspath(directory), f"{launch_id}{SUFFIX}")
    write_private(path, content)
    return path


def encode_launch(argv: list[str], env: Mapping[str, str], cwd: str, umask: int | None = None) -> bytes:
    """Return the file's content: fields separated by NUL, a count before each list, MAGIC at both ends."""
    if not argv or not argv[0].startswith("/"):
        raise Usage("a launch needs the full path of its program")
    if not cwd.startswith("/"):
        raise Usage("a launch needs the full path of its directory")
    variables = [f"{name}={value}" for name, value in env.items()]
    if any(not name or "=" in name for name in env):
        raise Usage("a variable of the environment has no usable name")
    mask = "" if umask is None else f"{umask:o}"
    fields = [cwd, mask, str(len(argv)), *argv, str(len(variables)), *variables]
    if any("\0" in field for field in fields):
        raise Usage("arguments and environment cannot hold a NUL byte")
    return b"\0".join([MAGIC, *map(os.fsencode, fields), MAGIC])


def write_private(path: str, content: bytes) -> None:
    """Write a new file that only its owner can read; remove it if the writing fails."""
    try:
        atomic_file.create(path, content)
    except OSError as cause:
        raise _refusal(cause, path) from cause


def replace_private(path: str, content: bytes) -> None:
    """Replace a file by one that only its owner can read."""
    cancel_launch(path)
    write_private(path, content)


def _refusal(cause: OSError, path: str) -> DiskFull | ReadOnly:
    if cause.errno in _NO_SPACE:
        return DiskFull(f"no space left for {path}")
    return ReadOnly(f"{path} cannot be written: {cause.strerror}")


def launcher_command(path: str) -> list[str]:
    """Return the command that a pane runs; the path is hex, so that tmux has nothing to interpret."""
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launcher.py")
    return [sys.executable, "-I", "-S", script, os.fsencode(path).hex()]


def launch_failure(path: str) -> str | None:
    """Return why the launcher could not execute the program, and delete the report; None without one."""
    failed = path + ".failed"
    try:
        handle = os.open(failed, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        report = os.read(handle, 4096).decode("utf-8", "replace").strip()
    finally:
        os.close(handle)
    os.unlink(failed)
    return report or "the launcher failed"


def cancel_launch(path: str) -> bool:
    """Delete a launch file, so that its pane closes itself; False if the launcher has taken it already.

    A record may name any file, so only a launch file in a folder of such files is deleted.
    """
    folder, name = os.path.split(path)
    if os.path.basename(folder) != FOLDER or not name.endswith(SUFFIX):
        return False
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
