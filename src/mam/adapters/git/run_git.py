"""Running the git program: an argv list, a clean environment, a deadline, and its answer.

The outputs go to files and not through pipes: what a hook leaves running in the background keeps
them open, and a pipe would not end before it does.
"""

from __future__ import annotations

import os
import signal
from tempfile import TemporaryFile
from threading import current_thread, main_thread
from time import sleep

from mam.adapters.git.failures import GitMissing, from_stderr, is_passing
from mam.adapters.system import child_process
from mam.core.errors import TimedOut, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import IO, Any

READ_SECONDS = 30.0
# A checkout of a large repository, with its filters and hooks.
WRITE_SECONDS = 600.0
# git is asked first to end, because it then takes away what it has half made.
_GRACE_SECONDS = 3.0
# Between attempts while another git is in the way; about three seconds in all.
_SHORTEST_PAUSE = 0.005
_LONGEST_PAUSE = 1.0

# Each names a repository, or a part of one, other than the one that is meant.
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
    """What git left: its exit status and its two outputs."""

    __slots__ = ("err", "out", "status")

    def __init__(self, status: int, out: bytes, err: str) -> None:
        """Take the three parts."""
        self.status = status
        self.out = out
        self.err = err

    @property
    def line(self) -> str:
        """The output as one value; a line break inside of it, as in a path, is part of it."""
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
        """Take the caller's environment; without one, that of this process."""
        self._environ = clean_environment(os.environ if environ is None else environ)
        self._read = read_seconds
        self._write = write_seconds

    def ask(self, repo: str, *arguments: str, accept: tuple[int, ...] = (0,)) -> Answer:
        """Return what git says about the repository at a directory; another status raises."""
        return self._checked(repo, arguments, accept, self._read)

    def change(self, repo: str, *arguments: str) -> Answer:
        """Have git change something, with the long deadline."""
        return self._checked(repo, arguments, (0,), self._write)

    def run(self, repo: str, arguments: tuple[str, ...], timeout: float | None = None) -> Answer:
        """Return git's answer, whatever its status.

        Raises GitMissing, and TimedOut after ending git and what it started. git has no terminal: it
        and its helpers fail where they would ask for a password.
        """
        seconds = self._write if timeout is None else timeout
        pause = _SHORTEST_PAUSE
        while True:
            answer = self._once(["git", "-C", repo, *arguments], seconds)
            if answer.status != 128 or pause > _LONGEST_PAUSE or not is_passing(answer.err):
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
                    hint="see what its hooks and filters wait for",
                ) from None
            except BaseException:
                child.end(_GRACE_SECONDS)
                raise
            if status is None:
                raise Unavailable("how git ended is unknown: another part of this program collected it")
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
    """Return an environment in which git means the repository that it is pointed at, and speaks English."""
    env = {
        name: value
        for name, value in environ.items()
        if name not in _FOREIGN and not name.startswith("GIT_TRACE")
    }
    return {**env, "LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0"}


def _start(
    argv: list[str], environ: Mapping[str, str], out: IO[bytes], err: IO[bytes]
) -> child_process.Child:
    """Start git. A Ctrl-C before its pid is known would leave it running, and is raised only after that."""
    heard: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    defers = callable(before) and current_thread() is main_thread()
    if defers:
        signal.signal(signal.SIGINT, lambda number, frame: heard.append((number, frame)))
    child = None
    try:
        child = child_process.start(argv, environ, session=True, out=out.fileno(), err=err.fileno())
        return child
    finally:
        if defers:
            signal.signal(signal.SIGINT, before)
        if heard:
            _pass_on(before, heard[0], child)


def _pass_on(handler: Any, heard: tuple[int, FrameType | None], child: child_process.Child | None) -> None:
    """Do what Ctrl-C does here; if that ends the caller, end git first."""
    try:
        handler(*heard)
    except BaseException:
        if child is not None:
            child.end(_GRACE_SECONDS)
        raise
