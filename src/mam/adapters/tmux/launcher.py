"""Becomes the program that a launch file describes. Run in a new pane, by path and without mam.

It has nothing but the standard library's `os` and `sys`, because every agent waits for it. Its only
argument is the file's path in hex. Whoever withdraws a launch deletes the file: then the pane goes too.
"""

import os
import sys

MAGIC = b"mam-launch-1"
LIMIT = 64 << 20
OWN = (b"TERM", b"TMUX", b"TMUX_PANE")


class Unusable(Exception):
    """The file is there and cannot be launched; the message is for a person, the status for the pane."""

    def __init__(self, message: str, status: int = 126) -> None:
        super().__init__(message)
        self.status = status


def take(path: bytes) -> "bytes | None":
    """Return the content of the launch file, which is gone afterwards; None if it was withdrawn."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        # Whoever withdraws the launch deletes the file too: only one of the two deletions succeeds.
        os.unlink(path)
        return read_all(handle)
    except FileNotFoundError:
        return None
    except OSError as cause:
        raise Unusable(f"the launch file cannot be read: {cause.strerror}") from cause


def read_all(handle: int) -> bytes:
    """Read to the end; a file that grows without one is refused."""
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
    """Return the list that begins with its own length, and what follows it."""
    end = 1 + int(fields[0])
    if not 1 <= end <= len(fields):
        raise ValueError
    return fields[1:end], fields[end:]


def environment(given: "dict[bytes, bytes]", own: "dict[bytes, bytes]") -> "dict[bytes, bytes]":
    """Return the caller's environment with the pane's own terminal; TMUX_TMPDIR says where sockets are."""
    kept = {
        name: value
        for name, value in given.items()
        if name != b"TERM" and (not name.startswith(b"TMUX") or name == b"TMUX_TMPDIR")
    }
    return {**kept, **{name: own[name] for name in OWN if name in own}}


def reset_signals() -> None:
    """Give the program the signals that a login shell would give it."""
    # Not `signal`, which imports `enum`: every agent waits for this.
    import _signal  # type: ignore[import-not-found]

    for number in range(1, _signal.NSIG):
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # KILL, STOP, and the two that the C library keeps for itself
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def become(launch: Launch) -> None:
    """Turn into the program; never returns."""
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


def give_up(path: bytes, said: str, status: int) -> None:
    """Say why on the pane and in a file beside the launch file, and end."""
    line = "".join(letter if letter.isprintable() else "?" for letter in said)
    data = line.encode("utf-8", "replace") + b"\n"
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(path + b".failed", flags, 0o600)
        os.write(handle, data)
        os.close(handle)
    except OSError:
        pass
    # tmux scrolls the first line away when it writes that the pane is dead.
    os.write(2, b"\nmam: " + data)
    os._exit(status)


def leave() -> None:
    """Close this pane, so that a withdrawn launch leaves none."""
    socket, pane = os.environ.get("TMUX", "").rsplit(",", 2)[0], os.environ.get("TMUX_PANE", "")
    if socket and pane:
        os.execvp("tmux", ["tmux", "-S", socket, "kill-pane", "-t", pane])  # noqa: S606
    os._exit(127)


def main() -> None:
    """Take the launch file and become its program, or say why not."""
    path = bytes.fromhex(sys.argv[1])
    try:
        content = take(path)
        if content is None:
            leave()
        else:
            become(Launch(content))
    except Unusable as cause:
        give_up(path, str(cause), cause.status)
    except OSError as cause:
        give_up(path, f"the launch failed: {cause.strerror}", 126)


if __name__ == "__main__":
    main()
