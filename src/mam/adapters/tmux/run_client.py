"""Running one tmux client and collecting its answer, under a deadline.

`subprocess` costs as much start-up as the interpreter itself, so the common case is posix_spawn and
poll. Only a call that needs a directory of its own goes the long way.
"""

from __future__ import annotations

import os
import select
import sys
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# Seconds for an answer of tmux, where a caller has no other wish.
TIMEOUT = 10.0
# The client may become the server of every agent: it must not inherit signals that this process
# ignores. HUP INT QUIT PIPE TERM and CHLD, by number because `signal` imports `enum`.
_DEFAULTED = (1, 2, 3, 13, 15, 20 if sys.platform == "darwin" else 17)
_KILL = 9
_CHUNK = 1 << 16


class Answer:
    """What a finished process left: exit status (None if unknown) and its two outputs."""

    __slots__ = ("err", "out", "status")

    def __init__(self, status: int | None, out: bytes, err: bytes) -> None:
        """Take the three parts."""
        self.status = status
        self.out = out
        self.err = err


class OutOfTime(Exception):
    """The process did not end within its time and was killed."""


def run(
    argv: list[str], env: dict[str, str], *, timeout: float, data: bytes = b"", cwd: str | None = None
) -> Answer:
    """Run argv (argv[0] a full path), feed it data, and return its answer.

    Raises OutOfTime after killing that one process, and OSError if it cannot be started. The process
    is in a group of its own: Ctrl-C on the caller's terminal does not cut a tmux command in half.
    """
    if cwd is not None:
        return _run_in(cwd, argv, env, timeout, data)
    return finish(start(argv, env), timeout=timeout, data=data)


def finish(started: tuple[int, int, int, int], *, timeout: float, data: bytes = b"") -> Answer:
    """Feed a started process and return its answer; what `start` opened is closed, and the process reaped."""
    deadline = monotonic() + timeout
    pid, feed, out, err = started
    try:
        chunks = _exchange(feed, data, out, err, deadline)
        status = reap(pid, deadline)
        pid = 0
        return Answer(status, b"".join(chunks[out]), b"".join(chunks[err]))
    finally:
        if pid:
            end(pid)


def start(argv: list[str], env: dict[str, str]) -> tuple[int, int, int, int]:
    """Start argv and return its pid and our ends of its input, output and error output."""
    ends = _pipes()
    try:
        pid = os.posix_spawn(
            argv[0],
            argv,
            env,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, ends[0], 0),
                (os.POSIX_SPAWN_DUP2, ends[3], 1),
                (os.POSIX_SPAWN_DUP2, ends[5], 2),
            ],
            setpgroup=0,
            setsigdef=_DEFAULTED,
            setsigmask=(),
        )
    except BaseException:
        for end in ends:
            os.close(end)
        raise
    for end in (ends[0], ends[3], ends[5]):
        os.close(end)
    return pid, ends[1], ends[2], ends[4]


def _pipes() -> list[int]:
    ends = [*os.pipe(), *os.pipe(), *os.pipe()]
    if min(ends) <= 2:
        # A process without standard descriptors: a pipe that is 0, 1 or 2 would be overwritten in the child.
        for end in ends:
            os.close(end)
        while (filler := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(filler)
        ends = [*os.pipe(), *os.pipe(), *os.pipe()]
    return ends


def _exchange(feed: int, data: bytes, out: int, err: int, deadline: float) -> dict[int, list[bytes]]:
    """Write and read until both outputs end; the three descriptors are closed whatever happens."""
    chunks: dict[int, list[bytes]] = {out: [], err: []}
    open_ends = {out, err}
    poller = select.poll()
    poller.register(out, select.POLLIN)
    poller.register(err, select.POLLIN)
    if data:
        os.set_blocking(feed, False)
        poller.register(feed, select.POLLOUT)
        open_ends.add(feed)
    else:
        os.close(feed)
    rest = memoryview(data)
    try:
        while open_ends - {feed}:
            for end, _ in _wait(poller, deadline):
                if end == feed:
                    rest = _write(feed, rest)
                    done = not rest
                else:
                    chunk = os.read(end, _CHUNK)
                    chunks[end].append(chunk)
                    done = not chunk
                if done:
                    poller.unregister(end)
                    open_ends.discard(end)
                    os.close(end)
    finally:
        for end in open_ends:
            os.close(end)
    return chunks


def _wait(poller: select.poll, deadline: float) -> list[tuple[int, int]]:
    left = deadline - monotonic()
    ready = poller.poll(max(0.0, left) * 1000)
    if not ready and left <= 0:
        raise OutOfTime
    return ready


def _write(feed: int, rest: memoryview) -> memoryview:
    try:
        return rest[os.write(feed, rest[:_CHUNK]) :]
    except BlockingIOError:
        return rest
    except BrokenPipeError:
        return rest[:0]


def reap(pid: int, deadline: float) -> int | None:
    """Collect the exit status; None if somebody else in this process already did. Raises OutOfTime."""
    pause = 0.0001
    while True:
        try:
            found, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if found:
            return os.waitstatus_to_exitcode(status)
        if monotonic() > deadline:
            raise OutOfTime
        sleep(pause)
        pause = min(pause * 2, 0.01)


def end(pid: int) -> None:
    """Kill a child that is not reaped yet, so that its pid is still its own."""
    try:
        os.kill(pid, _KILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def _run_in(cwd: str, argv: list[str], env: dict[str, str], timeout: float, data: bytes) -> Answer:
    import subprocess

    try:
        done = subprocess.run(  # noqa: PLW1510  (a status is an answer here)
            argv, input=data, capture_output=True, cwd=cwd, env=env, timeout=timeout, process_group=0
        )
    except subprocess.TimeoutExpired:
        raise OutOfTime from None
    return Answer(done.returncode, done.stdout, done.stderr)


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for tmux without what names a session of ours or of tmux.

    TMUX_TMPDIR stays: it says where the sockets are, and without it another server would be meant.
    """
    return {
        name: value
        for name, value in environ.items()
        if not name.startswith(("MAM_", "TMUX")) or name == "TMUX_TMPDIR"
    }
