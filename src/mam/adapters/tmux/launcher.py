"""Executes the program of a launch file. A new pane runs this script by its path, without importing mam.

It imports only `os` and `sys`, because every start of an agent waits for it. Its only argument is the path
of the launch file in hex. A withdrawn launch has no file any more; then the script closes its pane.
"""

import os
import sys

MAGIC = b"mam-launch-1"
LIMIT = 64 << 20
OWN = (b"TERM", b"TMUX", b"TMUX_PANE")


class Unusable(Exception):
    """The launch file exists and cannot be launched. The message is for a person, the status for the pane."""

    def __init__(self, message: str, status: int = 126) -> None:
        super().__init__(message)
        self.status = status


def take(path: bytes) -> "bytes | None":
    """Return the content of the launch file and delete it; None if the launch was withdrawn."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        # A withdrawal deletes the file too, and only one of the two deletions succeeds.
        os.unlink(path)
        return read_all(handle)
    except FileNotFoundError:
        return None
    except OSError as cause:
        raise Unusable(f"the launch file cannot be read: {cause.strerror}") from cause


def read_all(handle: int) -> bytes:
    """Read a file to its end; refuse one that is too long."""
    content = bytearray()
    while chunk := os.read(handle, 1 << 16):
        content += chunk
        if len(content) > LIMIT:
            raise Unusable("the launch file is too long")
    return bytes(content)


class Launch:
    """A launch file's content."""

    def __init__(self, content: bytes) -> None:
        fields = content.split(b"\0")
        try:
            if fields[0] != MAGIC:
                raise ValueError
            self.directory = fields[1]
            self.umask = int(fields[2], 8) if fields[2] else None
            self.argv, rest = counted(fields[3:])
            variables, rest = counted(rest)
            if rest != [MAGIC] or not self.argv:
                raise ValueError
        except (ValueError, IndexError):
            raise Unusable("the launch file is damaged") from None
        self.env = {}
        for variable in variables:
            name, _, value = variable.partition(b"=")
            self.env[name] = value


def counted(fields: "list[bytes]") -> "tuple[list[bytes], list[bytes]]":
    """Return the list that begins with its own length, and the fields after it."""
    end = 1 + int(fields[0])
    if not 1 <= end <= len(fields):
        raise ValueError
    return fields[1:end], fields[end:]


def environment(launch: "dict[bytes, bytes]", pane: "dict[bytes, bytes]") -> "dict[bytes, bytes]":
    """Return the launch's environment with the pane's terminal; TMUX_TMPDIR, the socket folder, stays."""
    variables = {
        name: value
        for name, value in launch.items()
        if name != b"TERM" and (not name.startswith(b"TMUX") or name == b"TMUX_TMPDIR")
    }
    return {**variables, **{name: pane[name] for name in OWN if name in pane}}


def reset_signals() -> None:
    """Give the program the signals that a login shell would give it."""
    # `signal` would import `enum`, and every start of an agent would wait for that.
    import _signal  # type: ignore[import-not-found]

    for number in range(1, _signal.NSIG):
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # KILL, STOP, and the two that the C library keeps for itself
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def execute(launch: Launch) -> None:
    """Replace this process by the program; never returns."""
    try:
        os.chdir(launch.directory)
    except OSError as cause:
        raise Unusable(f"cannot enter {os.fsdecode(launch.directory)}: {cause.strerror}", 127) from cause
    env = environment(launch.env, dict(os.environb))
    env[b"PWD"] = launch.directory
    if launch.umask is not None:
        os.umask(launch.umask)
    reset_signals()
    try:
        os.execve(launch.argv[0], launch.argv, env)  # noqa: S606  (no shell is the point)
    except OSError as cause:
        status = 127 if isinstance(cause, FileNotFoundError) else 126
        raise Unusable(f"cannot run {os.fsdecode(launch.argv[0])}: {cause.strerror}", status) from cause


def give_up(path: bytes, reason: str, status: int) -> None:
    """Write the reason to the pane and to a file beside the launch file, and exit."""
    line = "".join(letter if letter.isprintable() else "?" for letter in reason)
    data = line.encode("utf-8", "replace") + b"\n"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path + b".failed", flags, 0o600)
        os.write(handle, data)
        os.close(handle)
    except OSError:
        pass
    # The message starts on the second line: tmux scrolls the first away when it reports the dead pane.
    os.write(2, b"\nmam: " + data)
    os._exit(status)


def close_pane() -> None:
    """Close this pane, because its launch was withdrawn."""
    socket, pane = os.environ.get("TMUX", "").rsplit(",", 2)[0], os.environ.get("TMUX_PANE", "")
    if socket and pane:
        os.execvp("tmux", ["tmux", "-S", socket, "kill-pane", "-t", pane])  # noqa: S606
    os._exit(127)


def main() -> None:
    """Take the launch file and execute its program, or report why that failed."""
    path = bytes.fromhex(sys.argv[1])
    try:
        content = take(path)
        if content is None:
            close_pane()
        else:
            execute(Launch(content))
    except Unusable as cause:
        give_up(path, str(cause), cause.status)
    except OSError as cause:
        give_up(path, f"the launch failed: {cause.strerror}", 126)


if __name__ == "__main__":
    main()
