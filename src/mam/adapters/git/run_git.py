"""Runs the git program with an argv list, a clean environment and a deadline, and returns its answer.

The outputs go to files and not through pipes. A process that a git hook leaves in the background keeps the
outputs open, so reading a pipe would wait for that process.
"""

from __future__ import annotations

import os
import signal
from tempfile import TemporaryFile
from threading import current_thread, main_thread
from time import sleep

from mam.adapters.git.error_translation import GitMissing, from_stderr, is_temporary
from mam.adapters.system import child_process
from mam.core.errors import TimedOut, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import IO, Any

READ_SECONDS = 30.0
# Enough for a checkout of a large repository with its filters and hooks.
WRITE_SECONDS = 600.0
# SIGTERM comes first, because git then removes what it has not finished.
_GRACE_SECONDS = 3.0
# Pauses between attempts while another git process is in the way; about three seconds in all.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 1.0

# Each of these variables points git to another repository, or to a part of one.
_FOREIGN = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_NAMESPACE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_QUARANTINE_PATH",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)


class Answer:
    """The result of git: its exit status and its two outputs."""

    __slots__ = ("err", "out", "status")

    def __init__(self, status: int, out: bytes, err: str) -> None:
        """Store the three parts."""
        self.status = status
        self.out = out
        self.err = err

    @property
    def line(self) -> str:
        """The output as one value; a line break inside it, as in a path, belongs to the value."""
        return os.fsdecode(self.out.removesuffix(b"\n"))


class Program:
    """The git program of one environment."""

    __slots__ = ("_environ", "_read", "_write")

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        read_seconds: float = READ_SECONDS,
        write_seconds: float = WRITE_SECONDS,
    ) -> None:
        """Store the caller's environment, or that of this process."""
        self._environ = clean_environment(os.environ if environ is None else environ)
        self._read = read_seconds
        self._write = write_seconds

    def ask(self, repo: str, *arguments: str, accept: tuple[int, ...] = (0,)) -> Answer:
        """Return git's answer about the repository of a directory; raise an error for any other status."""
        return self._checked(repo, arguments, accept, self._read)

    def change(self, repo: str, *arguments: str) -> Answer:
        """Run a git command that changes something, with the long deadline."""
        return self._checked(repo, arguments, (0,), self._write)

    def run(self, repo: str, arguments: tuple[str, ...], timeout: float | None = None) -> Answer:
        """Return git's answer with any status.

        Raises GitMissing, and TimedOut after ending git and what it started. git has no terminal, so git
        and its helpers fail instead of asking for a password.
        """
        seconds = self._write if timeout is None else timeout
        pause = _SHORTEST_PAUSE
        while True:
            answer = self._once(["git", "-C", repo, *arguments], seconds)
            if answer.status != 128 or pause > _LONGEST_PAUSE or not is_temporary(answer.err):
                return answer
            sleep(pause)
            pause *= 1.5

    def _once(self, argv: list[str], seconds: float) -> Answer:
        with TemporaryFile() as out, TemporaryFile() as err:
            try:
                child = _start(argv, self._environ, out, err)
            except FileNotFoundError as cause:
                raise GitMissing("git is not on PATH", hint="install git, or leave out --worktree") from cause
            except OSError as cause:
                raise Unavailable(f"git cannot be started: {cause.strerror}") from cause
            try:
                status = child.wait(seconds)
            except child_process.OutOfTime:
                child.end(_GRACE_SECONDS)
                raise TimedOut(
                    f"git {' '.join(argv[3:5])} did not end within {seconds:g} s",
                    hint="check what its hooks and filters wait for",
                ) from None
            except BaseException:
                child.end(_GRACE_SECONDS)
                raise
            if status is None:
                raise Unavailable(
                    "mam does not know how git ended: another part of this program collected its status"
                )
            out.seek(0)
            err.seek(0)
            return Answer(status, out.read(), err.read().decode("utf-8", "replace"))

    def _checked(
        self, repo: str, arguments: tuple[str, ...], accept: tuple[int, ...], timeout: float
    ) -> Answer:
        answer = self.run(repo, arguments, timeout)
        if answer.status not in accept:
            raise from_stderr(answer.err, repo)
        return answer


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git uses the repository of `-C` and prints English messages."""
    env = {
        name: value
        for name, value in environ.items()
        if name not in _FOREIGN and not name.startswith("GIT_TRACE")
    }
    return {**env, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def _start(
    argv: list[str], environ: Mapping[str, str], out: IO[bytes], err: IO[bytes]
) -> child_process.Child:
    """Start git. A Ctrl-C before the pid is known would leave git running, so it is raised after that."""
    interrupts: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    defers = callable(before) and current_thread() is main_thread()
    if defers:
        signal.signal(signal.SIGINT, lambda number, frame: interrupts.append((number, frame)))
    child = None
    try:
        child = child_process.start(argv, environ, session=True, out=out.fileno(), err=err.fileno())
        return child
    finally:
        if defers:
            signal.signal(signal.SIGINT, before)
        if interrupts:
            _handle_interrupt(before, interrupts[0], child)


def _handle_interrupt(
    handler: Any, interrupt: tuple[int, FrameType | None], child: child_process.Child | None
) -> None:
    """Call the handler of a deferred Ctrl-C; if it raises, end git first."""
    try:
        handler(*interrupt)
    except BaseException:
        if child is not None:
            child.end(_GRACE_SECONDS)
        raise
