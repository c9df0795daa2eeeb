"""Runs the command of a job in a pane, and records how it ended. Executed by its path, without importing mam.

Arguments: the record of the end, the log of the output, the prompt file, `stdin` or `empty`, the command.

The command has the pane as its controlling terminal and is its foreground process group, so that Ctrl-C
reaches it. Its stdin is the prompt file or empty. What it writes goes to the pane as it is, and to the log:
the first megabyte and the last nine. The record is written when the command itself has ended; processes that
it left behind, and that may keep its output open, are not waited for.

The record is opened by its path each time: its folder may have been deleted and made again, by `mam restore`.
The runner makes no folder, so nothing appears where a root was deleted for good.
"""

import errno
import fcntl
import os
import signal
import sys
import time
from contextlib import suppress
from select import select

HEAD, TAIL = 1 << 20, 9 << 20
CHUNK = 1 << 16
# While the pane has not taken this much, nothing more is read from the command.
BACKLOG = 1 << 18
# What processes that outlive the command may still write counts up to here.
LAST_OUTPUT = 1 << 20
# Seconds for which the last output may wait for the pane, and between two marks of activity.
PATIENCE, MARK_SECONDS = 2.0, 0.5
# A full disk does not keep the record from being written: it has its room from the start.
ROOM = 1024
EMPTY = b"{}".ljust(ROOM) + b"\n"
NOT_FOUND, NOT_STARTED = 127, 126
FORWARDED = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
IGNORED = (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP, signal.SIGPIPE)
FLAGS = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Failure(Exception):
    """The command cannot be started. `reason` is a word for programs, `status` the status of the pane."""

    def __init__(self, message: str, reason: str, status: int) -> None:
        super().__init__(message)
        self.reason = reason
        self.status = status


class Log:
    """The output in files: the first megabyte in the log itself, and the newest part in files beside it.

    Such a file has the position of its first byte in its name. At the end the log holds all that is kept.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0
        self.problem = ""
        self._parts: list[int] = []
        self._handle = -1
        self._room = HEAD
        self._open(path)

    def write(self, data: bytes) -> None:
        """Add output; after a problem with the disk only its size is counted."""
        rest = memoryview(data)
        while rest and not self.problem:
            if not self._room:
                self._next_part()
                continue
            try:
                count = os.write(self._handle, rest[: self._room])
            except OSError as cause:
                self.problem = str(cause.strerror)
                break
            self._room -= count
            self.size += count
            rest = rest[count:]
        self.size += len(rest)

    def finish(self) -> None:
        """Put the log together, with a line that says how much was left out."""
        if self._handle >= 0:
            os.close(self._handle)
        if not self._parts or self.problem:
            return
        fresh = self.path + ".new"
        try:
            with open(self.path, "rb") as head, open(fresh, "wb", opener=private) as file:
                file.write(head.read(HEAD))
                start = max(HEAD, self.size - TAIL)
                if start > HEAD:
                    file.write(b"\n[mam: %d bytes are left out here]\n" % (start - HEAD))
                for at in self._parts:
                    with open(part_name(self.path, at), "rb") as part:
                        part.seek(max(0, start - at))
                        while data := part.read(CHUNK):
                            file.write(data)
            os.rename(fresh, self.path)
        except OSError as cause:
            self.problem = str(cause.strerror)
            remove(fresh)
            return
        for at in self._parts:
            remove(part_name(self.path, at))

    def _next_part(self) -> None:
        os.close(self._handle)
        self._handle = -1
        self._parts.append(self.size)
        for at in self._parts[:-2]:
            remove(part_name(self.path, at))
        del self._parts[:-2]
        self._room = TAIL
        self._open(part_name(self.path, self.size))

    def _open(self, path: str) -> None:
        try:
            self._handle = os.open(path, FLAGS | os.O_TRUNC, 0o600)
        except OSError as cause:
            self.problem = str(cause.strerror)


class Pane:
    """The pane's terminal. It may be slow, and it may be gone; neither holds up the record."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.backlog = bytearray()
        self.is_gone = False
        flags = fcntl.fcntl(handle, fcntl.F_GETFL)
        fcntl.fcntl(handle, fcntl.F_SETFL, flags | os.O_NONBLOCK)

    def write(self, data: bytes) -> None:
        """Show output."""
        if not self.is_gone:
            self.backlog += data
            self.advance()

    def advance(self) -> None:
        """Write what the terminal takes."""
        try:
            while self.backlog:
                del self.backlog[: os.write(self.handle, self.backlog[:CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            self.is_gone = True
            self.backlog.clear()

    def finish(self) -> None:
        """Give the terminal some time for the rest."""
        until = time.monotonic() + PATIENCE
        while self.backlog and (left := until - time.monotonic()) > 0:
            select([], [self.handle], [], left)
            self.advance()


class Command:
    """The running command."""

    def __init__(self, argv: list[str], stdin: int) -> None:
        self.argv = argv
        self.output, write = os.pipe()
        error_read, error_write = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            self._become(stdin, write, error_write)
        os.close(write)
        os.close(error_write)
        take_terminal(self.pid, self.pid)
        number = os.read(error_read, 16)
        os.close(error_read)
        os.set_blocking(self.output, False)
        if number:
            os.waitpid(self.pid, 0)
            cause = os.strerror(int(number))
            status = NOT_FOUND if int(number) == errno.ENOENT else NOT_STARTED
            raise Failure(f"{argv[0]} cannot be run: {cause}", "exec", status)

    def _become(self, stdin: int, write: int, error_write: int) -> None:
        """Execute the command in the new process, in a process group of its own."""
        try:
            take_terminal(0, os.getpid())
            for target, source in ((0, stdin), (1, write), (2, write)):
                os.dup2(source, target)
            for number in (*FORWARDED, *IGNORED, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            os.execv(self.argv[0], self.argv)  # noqa: S606  (no shell is the point)
        except OSError as cause:
            os.write(error_write, str(cause.errno or errno.EIO).encode())
        finally:
            os._exit(NOT_STARTED)

    def forward(self, number: int, _frame: object) -> None:
        """Pass a signal on to the command and to what it started."""
        try:
            os.killpg(self.pid, number)
        except OSError:
            return


def take_terminal(pid: int, group: int) -> None:
    """Make a process the leader of a group, and the group the foreground of the terminal, if there is one."""
    with suppress(OSError):  # the other one of parent and child was first
        os.setpgid(pid, group)
    with suppress(OSError):
        os.tcsetpgrp(0 if os.isatty(0) else 1, group)


def private(path: str, flags: int) -> int:
    """Open a file that only its owner can read."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def part_name(path: str, at: int) -> str:
    """Return the name of the file that holds the output from a position on."""
    return f"{path}.{at:020d}"


def remove(path: str) -> None:
    """Remove a file, if it can be removed."""
    try:
        os.unlink(path)
    except OSError:
        return


def reserve(path: str) -> int:
    """Write an empty record that has room for the end; -1 if even that is impossible."""
    try:
        handle = os.open(path, FLAGS | os.O_TRUNC, 0o600)
        os.write(handle, EMPTY)
    except OSError:
        return -1
    return handle


def record(path: str, reserved: int, facts: dict[str, object]) -> None:
    """Write how the command ended: as a new file, or into the reserved room if the disk is full."""
    import json

    content = json.dumps(facts).encode().ljust(ROOM) + b"\n"
    fresh = path + ".new"
    try:
        remove(fresh)
        handle = os.open(fresh, FLAGS | os.O_EXCL, 0o600)
        try:
            if os.write(handle, content) != len(content):
                raise OSError(errno.ENOSPC, "no space left")
            os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(fresh, path)
    except OSError:
        remove(fresh)
        write_in_place(path, reserved, content)


def write_in_place(path: str, reserved: int, content: bytes) -> None:
    """Write the end into the room that the record has: at its path, or where it was at the start."""
    try:
        reserved = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        if reserved < 0:
            return
    os.pwrite(reserved, content, 0)
    os.fsync(reserved)


def prepare_terminal(handle: int) -> None:
    """Switch off the key that suspends: nobody could continue the command."""
    import termios

    try:
        attributes = termios.tcgetattr(handle)
        attributes[6][termios.VSUSP] = bytes([os.fpathconf(handle, "PC_VDISABLE") & 0xFF])
        termios.tcsetattr(handle, termios.TCSANOW, attributes)
    except (termios.error, OSError, ValueError):
        return


def open_prompt(path: str, is_stdin: bool) -> int:
    """Return what the command reads: the prompt file, which must exist in any case, or nothing."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as cause:
        raise Failure(f"the prompt file {path} cannot be read: {cause.strerror}", "prompt", 1) from None
    if is_stdin:
        return handle
    os.close(handle)
    return os.open(os.devnull, os.O_RDONLY)


def copy(command: Command, wake: int, log: Log, pane: Pane, record_path: str) -> int:
    """Copy the output until the command itself has ended; return its wait status."""
    marked, is_open = 0.0, True
    while True:
        reads = [wake] + ([command.output] if is_open and len(pane.backlog) < BACKLOG else [])
        readable, writable, _ = select(reads, [pane.handle] if pane.backlog else [], [])
        if writable:
            pane.advance()
        if command.output in readable:
            data = read(command.output)
            is_open = data != b""
            if data:
                log.write(data)
                pane.write(data)
                if time.monotonic() - marked >= MARK_SECONDS:
                    marked = time.monotonic()
                    mark(record_path)
        if wake in readable:
            os.read(wake, CHUNK)
            pid, status = os.waitpid(command.pid, os.WNOHANG)
            if pid:
                break
    rest = LAST_OUTPUT
    while is_open and rest > 0 and (data := read(command.output)):
        log.write(data)
        pane.write(data)
        rest -= len(data)
    return status


def read(handle: int) -> bytes | None:
    """Return output; None if there is none now, and nothing at its end."""
    try:
        return os.read(handle, CHUNK)
    except BlockingIOError:
        return None


def mark(path: str) -> None:
    """Date the record with the time of the newest output; this needs no room on the disk."""
    try:
        os.utime(path, follow_symlinks=False)
    except OSError:
        return


def run(argv: list[str]) -> int:
    """Run the command, and return the status for the pane."""
    record_path, log_path, prompt_path, way, *command_line = argv
    reserved = reserve(record_path)
    wake, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    prepare_terminal(1)
    log, pane = Log(log_path), Pane(1)
    try:
        stdin = open_prompt(prompt_path, way == "stdin")
        command = Command(command_line, stdin)
    except Failure as cause:
        pane.write(f"mam: {cause}\n".encode("utf-8", "replace"))
        log.finish()
        record(record_path, reserved, {"failure": str(cause), "reason": cause.reason})
        pane.finish()
        return cause.status
    for number in FORWARDED:
        signal.signal(number, command.forward)
    status = copy(command, wake, log, pane, record_path)
    log.finish()
    facts: dict[str, object] = {"bytes": log.size, "problem": log.problem}
    is_signal = os.WIFSIGNALED(status)
    code = os.WTERMSIG(status) if is_signal else os.WEXITSTATUS(status)
    record(record_path, reserved, {("signal" if is_signal else "exit_status"): code, **facts})
    if log.problem:
        pane.write(f"\nmam: the output is not all in {log_path}: {log.problem}\n".encode("utf-8", "replace"))
    pane.finish()
    return 128 + code if is_signal else code


if __name__ == "__main__":
    os._exit(run(sys.argv[1:]))
