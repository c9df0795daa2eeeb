"""Runs the git program with an argv list, a clean environment and a deadline, and returns its answer.

git runs nothing that a repository names: no hook, filter or file monitor, and it fetches nothing. The outputs
go to files and not through pipes. A process that a filter of the user leaves in the background keeps the
outputs open, so reading a pipe would wait for that process.
"""

from __future__ import annotations

import os
import signal
from tempfile import TemporaryFile
from threading import current_thread, main_thread
from time import sleep

from mam.adapters.git import repository_settings
from mam.adapters.git.error_translation import GitMissing, from_stderr, is_temporary
from mam.adapters.system import child_process
from mam.core.errors import TimedOut, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import IO, Any

READ_SECONDS = 30.0
# Enough for a checkout of a large repository with the user's filters.
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
_OWN = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1"}
# git's exit status for an option that it does not know.
_USAGE = 129
# These commands neither read nor write the files of a working tree, so no filter can run.
_WITHOUT_FILES = frozenset(
    {
        "branch",
        "cat-file",
        "check-ref-format",
        "for-each-ref",
        "ls-files",
        "rev-list",
        "rev-parse",
        "update-ref",
    }
)
_WORKTREE_LIST, _CONFIG = ("worktree", "list"), "config"


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

    def change(self, repo: str, *arguments: str, also: str | None = None) -> Answer:
        """Run a git command that changes something, with the long deadline; see `run` for `also`."""
        return self._checked(repo, arguments, (0,), self._write, also)

    def run(
        self, repo: str, arguments: tuple[str, ...], timeout: float | None = None, also: str | None = None
    ) -> Answer:
        """Return git's answer with any status. `also` is another worktree in which git runs itself.

        Raises GitMissing, and TimedOut after ending git and what it started. git has no terminal, so git
        and its helpers fail instead of asking for a password.
        """
        seconds = self._write if timeout is None else timeout
        options = [] if _touches_no_files(arguments) else self._switched_off(repo, also)
        return self._repeated(repo, arguments, options, seconds)

    def _switched_off(self, repo: str, also: str | None) -> list[str]:
        """Return the options that switch off the programs in the settings of a repository.

        A linked worktree may have settings of its own. What changes between this look and git's own is not
        noticed.
        """
        settings = []
        for place in (repo, also):
            if place is None or (place is also and not os.path.isdir(place)):
                continue
            answer = self._repeated(place, repository_settings.LIST_PROGRAMS, [], self._read)
            parse = repository_settings.scoped_settings
            if answer.status == _USAGE:
                arguments = repository_settings.LIST_PROGRAMS_WITHOUT_SCOPE
                answer = self._repeated(place, arguments, [], self._read)
                parse = repository_settings.unscoped_settings
            if answer.status not in (0, 1):
                raise from_stderr(answer.err, place)
            settings += parse(answer.out)
        return repository_settings.switched_off(settings)

    def _repeated(self, repo: str, arguments: tuple[str, ...], options: list[str], seconds: float) -> Answer:
        pause = _SHORTEST_PAUSE
        while True:
            argv = ["git", "-C", repo, *repository_settings.ALWAYS_OFF, *options, *arguments]
            answer = self._once(argv, seconds, arguments)
            if answer.status != 128 or pause > _LONGEST_PAUSE or not is_temporary(answer.err):
                return answer
            sleep(pause)
            pause *= 1.5

    def _once(self, argv: list[str], seconds: float, arguments: tuple[str, ...]) -> Answer:
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
                    f"git {' '.join(arguments[:2])} did not end within {seconds:g} s",
                    hint="check what your own filters wait for",
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
        self,
        repo: str,
        arguments: tuple[str, ...],
        accept: tuple[int, ...],
        timeout: float,
        also: str | None = None,
    ) -> Answer:
        answer = self.run(repo, arguments, timeout, also)
        if answer.status not in accept:
            raise from_stderr(answer.err, repo)
        return answer


def _touches_no_files(arguments: tuple[str, ...]) -> bool:
    command = arguments[:1]
    return command == (_CONFIG,) or arguments[:2] == _WORKTREE_LIST or not _WITHOUT_FILES.isdisjoint(command)


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which git uses the repository of `-C` and prints English messages.

    git reaches no other repository: in a partial clone it would fetch what is missing with the programs that
    the settings of the repository name.
    """
    env = {
        name: value
        for name, value in environ.items()
        if name not in _FOREIGN and not name.startswith("GIT_TRACE")
    }
    return {**env, **_OWN}


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
