"""Runs programs with a deadline and collects their output and exit status.

Importing `subprocess` takes as long as starting the interpreter, so the common case uses posix_spawn and
poll. Only a program that needs a directory or a session of its own is started with `subprocess`.
"""

from __future__ import annotations

import os
import select
import sys
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Where an output goes, if not to a descriptor of the caller: to a pipe, or together with the other output.
PIPE, MERGED = -1, -2
_NONE = -3
_LAST_STANDARD = 2
# A child may outlive mam, so it must not inherit the signals that this process ignores.
# HUP INT QUIT PIPE TERM and CHLD, by number because `signal` imports `enum`.
_DEFAULTED = (1, 2, 3, 13, 15, 20 if sys.platform == "darwin" else 17)
_KILL, _TERM = 9, 15
_CHUNK = 1 << 16
_FOREVER = float("inf")


class Answer:
    """The result of a finished process: its exit status (None if unknown) and its two outputs."""

    __slots__ = ("err", "out", "status")

    def __init__(self, status: int | None, out: bytes, err: bytes) -> None:
        """Store the three parts."""
        self.status = status
        self.out = out
        self.err = err


class OutOfTime(Exception):
    """The process did not end in time, printed too much, or was cancelled."""


class TooMuchOutput(OutOfTime):
    """The process printed more than it may; `out` is what was read of its output."""

    def __init__(self, out: bytes) -> None:
        """Store the bytes."""
        super().__init__()
        self.out = out


class Child:
    """A process that mam started. Only this object reaps it, so the pid stays valid until then."""

    __slots__ = ("_ends", "_is_reaped", "_leads", "_status", "pid")

    def __init__(self, pid: int, ends: tuple[int, int, int], *, leads: bool) -> None:
        """Store our ends of its input, output and error output, and whether it leads a session."""
        self.pid = pid
        self._ends = ends
        self._leads = leads
        self._is_reaped = False
        self._status: int | None = None

    def finish(
        self,
        timeout: float,
        data: bytes = b"",
        *,
        most: int | None = None,
        last_seconds: float = 0.0,
        cancel: int | None = None,
    ) -> Answer:
        """Write data to the process, read its outputs, reap it, and close what `start` opened.

        Raises OutOfTime after the timeout, TooMuchOutput for more than `most` bytes, and OutOfTime as soon as
        the descriptor `cancel` can be read or its other end is closed. After any failure the process has been
        ended. A process that has closed its outputs gets at least `last_seconds` to end.
        """
        deadline = monotonic() + timeout
        ends, self._ends = self._ends, (_NONE, _NONE, _NONE)
        try:
            out, err = _exchange(*ends, data, deadline, most=most, cancel=cancel)
            status = self.wait(max(last_seconds, deadline - monotonic()))
        except BaseException:
            self.end()
            raise
        return Answer(status, out, err)

    def wait(self, seconds: float) -> int | None:
        """Return the status as soon as the process ends; None if another reaped it. Raises OutOfTime."""
        deadline, pause = monotonic() + seconds, 0.0001
        while not self._reap():
            remaining = deadline - monotonic()
            if remaining <= 0:
                raise OutOfTime
            _await_exit(self.pid, remaining, pause)
            pause = min(pause * 2, 0.01)
        return self._status

    def end(self, grace: float = 0.0) -> None:
        """Kill the process and reap it; if it leads a session, kill its whole group.

        With a grace, SIGTERM comes first and the process has that many seconds to end by itself. The process
        is reaped last: until then the kernel gives its pid, which is also the group's, to no other process.
        """
        if self._is_reaped:
            return
        if grace:
            self._signal(_TERM)
            self._await_end(grace)
        self._signal(_KILL)
        self.wait(_FOREVER)

    def _signal(self, number: int) -> None:
        try:
            (os.killpg if self._leads else os.kill)(self.pid, number)
        except ProcessLookupError:
            return

    def _await_end(self, seconds: float) -> None:
        """Wait until the process has ended, at most so many seconds; do not reap it."""
        deadline, pause = monotonic() + seconds, 0.0001
        while (remaining := deadline - monotonic()) > 0:
            try:
                if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                    return
            except ChildProcessError:
                return
            _await_exit(self.pid, remaining, pause)
            pause = min(pause * 2, 0.01)

    def cancel(self) -> None:
        """End the process and close its pipes; nobody wants its answer any more."""
        self._close_ends()
        self.end()

    def __del__(self) -> None:
        """Close the pipes that are still open; the process itself runs on."""
        self._close_ends()

    def _close_ends(self) -> None:
        ends, self._ends = self._ends, (_NONE, _NONE, _NONE)
        for end in ends:
            if end != _NONE:
                os.close(end)

    def _reap(self) -> bool:
        if not self._is_reaped:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self._is_reaped = True
                return True
            if pid:
                self._is_reaped, self._status = True, os.waitstatus_to_exitcode(status)
        return self._is_reaped


def run(
    argv: list[str], env: Mapping[str, str], *, timeout: float, data: bytes = b"", cwd: str | None = None
) -> Answer:
    """Run argv (argv[0] a full path) with data as its input, and return its answer.

    Raises OutOfTime after killing that one process, and OSError if it cannot be started. The process
    is in a group of its own, so Ctrl-C on the caller's terminal does not interrupt it. Its input is a file
    that is whole before it starts: a pipe would end early if this process were killed, and the process would
    take the part for all of it.
    """
    source = _input_file(data) if data else _NONE
    try:
        child = start(argv, env, cwd=cwd, source=source)
    finally:
        if source != _NONE:
            os.close(source)
    return child.finish(timeout)


def _input_file(data: bytes) -> int:
    """Return the descriptor of a file without a name that holds data, above the standard descriptors."""
    if sys.platform == "linux":
        handle = os.memfd_create("input")
    else:
        import tempfile

        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.lseek(handle, 0, os.SEEK_SET)
        if handle > _LAST_STANDARD:
            return handle
        import fcntl

        moved = fcntl.fcntl(handle, fcntl.F_DUPFD_CLOEXEC, _LAST_STANDARD + 1)
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return moved


def start(
    argv: list[str],
    env: Mapping[str, str],
    *,
    cwd: str | None = None,
    session: bool = False,
    feed: bool = False,
    source: int = _NONE,
    out: int = PIPE,
    err: int = PIPE,
) -> Child:
    """Start argv with exactly this environment, in a group of its own. Raises OSError.

    With `session` the process leads a session of its own: it has no terminal, and `end` also kills what it
    started. With `feed` it reads the data of `finish`, with `source` this descriptor, else nothing.
    Without a directory or a session argv[0] must be a full path.
    """
    opened: list[int] = []
    try:
        from_us, feeding = _pipe(opened) if feed else (source, _NONE)
        out_end, to_out = _pipe(opened) if out == PIPE else (_NONE, out)
        err_end, to_err = _pipe(opened) if err == PIPE else (_NONE, err)
        if cwd is None and not session:
            pid = _spawn(argv, env, from_us, to_out, to_err)
        else:
            pid = _spawn_apart(argv, env, from_us, to_out, to_err, cwd=cwd, session=session)
    except BaseException:
        for end in opened:
            os.close(end)
        raise
    for end in (from_us, to_out, to_err):
        if end in opened:
            os.close(end)
    return Child(pid, (feeding, out_end, err_end), leads=session)


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    if min(ends) <= _LAST_STANDARD:
        # This process has no standard descriptors. The child would overwrite a pipe that is 0, 1 or 2.
        for end in ends:
            os.close(end)
        while (filler := os.open(os.devnull, os.O_RDWR)) <= _LAST_STANDARD:
            pass
        os.close(filler)
        ends = os.pipe()
    opened += ends
    return ends


def _spawn(argv: list[str], env: Mapping[str, str], from_us: int, to_out: int, to_err: int) -> int:
    return os.posix_spawn(
        argv[0],
        argv,
        env,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
            if from_us == _NONE
            else (os.POSIX_SPAWN_DUP2, from_us, 0),
            (os.POSIX_SPAWN_DUP2, to_out, 1),
            (os.POSIX_SPAWN_DUP2, 1 if to_err == MERGED else to_err, 2),
        ],
        setpgroup=0,
        setsigdef=_DEFAULTED,
        setsigmask=(),
    )


def _spawn_apart(
    argv: list[str],
    env: Mapping[str, str],
    from_us: int,
    to_out: int,
    to_err: int,
    *,
    cwd: str | None,
    session: bool,
) -> int:
    import subprocess

    process = subprocess.Popen(
        argv,
        env=dict(env),
        cwd=cwd,
        stdin=subprocess.DEVNULL if from_us == _NONE else from_us,
        stdout=to_out,
        stderr=subprocess.STDOUT if to_err == MERGED else to_err,
        start_new_session=session,
        process_group=None if session else 0,
    )
    # `Child` reaps the process. A return code keeps subprocess from waiting for it and from warning.
    process.returncode = 0
    return process.pid


def _exchange(
    feed: int, out: int, err: int, data: bytes, deadline: float, *, most: int | None, cancel: int | None
) -> tuple[bytes, bytes]:
    """Write and read until both outputs end; close the three descriptors in any case."""
    chunks: dict[int, list[bytes]] = {end: [] for end in (out, err) if end != _NONE}
    open_ends = set(chunks)
    poller = select.poll()
    for end in (*chunks, *(() if cancel is None else (cancel,))):
        poller.register(end, select.POLLIN)
    if data and feed != _NONE:
        os.set_blocking(feed, False)
        poller.register(feed, select.POLLOUT)
        open_ends.add(feed)
    elif feed != _NONE:
        os.close(feed)
    rest = memoryview(data)
    total = 0
    try:
        while open_ends - {feed}:
            for end, _ in _wait(poller, deadline, cancel):
                if end == feed:
                    rest = _write(feed, rest)
                    is_over = not rest
                else:
                    chunk = os.read(end, _CHUNK)
                    chunks[end].append(chunk)
                    is_over = not chunk
                    total += len(chunk)
                if is_over:
                    poller.unregister(end)
                    open_ends.discard(end)
                    os.close(end)
            if most is not None and total > most:
                raise TooMuchOutput(b"".join(chunks.get(out, ())))
    finally:
        for end in open_ends:
            os.close(end)
    return b"".join(chunks.get(out, ())), b"".join(chunks.get(err, ()))


def _wait(poller: select.poll, deadline: float, cancel: int | None) -> list[tuple[int, int]]:
    remaining = deadline - monotonic()
    ready = poller.poll(max(0.0, remaining) * 1000)
    if (not ready and remaining <= 0) or any(end == cancel for end, _ in ready):
        raise OutOfTime
    return ready


def _write(feed: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(feed, rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]


def _await_exit(pid: int, remaining: float, pause: float) -> None:
    """Return when a child ends or the time is over; without pidfd (macOS, old kernels) after a pause."""
    if sys.platform == "linux":
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            sleep(min(pause, remaining))
            return
        try:
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            poller.poll(None if remaining == _FOREVER else remaining * 1000)
        finally:
            os.close(handle)
    else:
        sleep(min(pause, remaining))
