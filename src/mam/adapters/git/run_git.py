"""Runs the git program with an argv list, a clean environment and a deadline, and returns its answer.

git runs nothing that a repository names: no hook, filter or file monitor, and it fetches nothing. The outputs
go to files and not through pipes. A process that a filter of the user leaves in the background keeps the
outputs open, so reading a pipe would wait for that process. `Program.read` has a pipe all the same: it takes
only the first bytes, and not for long.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from tempfile import TemporaryFile
from threading import current_thread, main_thread
from time import monotonic, sleep

from mam.adapters.git import repository_settings
from mam.adapters.git.error_translation import GitMissing, from_stderr, is_temporary
from mam.adapters.system import child_process
from mam.core.errors import Refused, TimedOut, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import FrameType
    from typing import Any

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
# More settings than `read` looks through. Their names would not fit into the arguments of a program either.
_MOST_SETTINGS = 1 << 20


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
            settings += _settings(place, partial(self._repeated, place, options=[], seconds=self._read))
        return repository_settings.switched_off(settings)

    def read(
        self, repo: str, *arguments: str, seconds: float, most: int, cancel: int | None = None
    ) -> tuple[bytes, bool]:
        """Return the first bytes that a git command prints, and whether there are more; it must only read.

        There are more if git prints more than `most` bytes. All of it takes at most so many seconds, with the
        look at the settings. git is then killed at once with what it started, because a command that only
        reads leaves nothing to remove. When the descriptor `cancel` can be read, or its other end is closed,
        the time is over. Raises TimedOut, GitMissing, and Refused if git fails; git's words are not kept.
        """
        deadline = monotonic() + seconds

        def output(arguments: tuple[str, ...], options: list[str], most: int) -> tuple[Answer, bool]:
            remaining = max(0.0, deadline - monotonic())
            try:
                return self._first_output(_argv(repo, options, arguments), remaining, most, cancel)
            except child_process.OutOfTime:
                raise TimedOut(f"git {arguments[0]} did not end within {seconds:g} s") from None

        def listing(arguments: tuple[str, ...]) -> Answer:
            answer, is_cut = output(arguments, [], _MOST_SETTINGS)
            if is_cut:
                raise Refused(f"the settings of {repo} name too many programs")
            return answer

        options = repository_settings.switched_off(_settings(repo, listing))
        answer, is_cut = output(arguments, options, most)
        if answer.status:
            raise from_stderr(answer.err, repo)
        return answer.out, is_cut

    def _first_output(
        self, argv: list[str], seconds: float, most: int, cancel: int | None
    ) -> tuple[Answer, bool]:
        # What git says of errors is not read: a repository could make that long.
        nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            child = _start(argv, self._environ, child_process.PIPE, nowhere)
        finally:
            os.close(nowhere)
        try:
            answer = child.finish(seconds, most=most, cancel=cancel)
        except child_process.TooMuchOutput as cut:
            return Answer(0, cut.out[:most], ""), True
        return _answer(answer.status, answer.out, b""), False

    def _repeated(self, repo: str, arguments: tuple[str, ...], options: list[str], seconds: float) -> Answer:
        pause = _SHORTEST_PAUSE
        while True:
            answer = self._once(_argv(repo, options, arguments), seconds, arguments)
            if answer.status != 128 or pause > _LONGEST_PAUSE or not is_temporary(answer.err):
                return answer
            sleep(pause)
            pause *= 1.5

    def _once(self, argv: list[str], seconds: float, arguments: tuple[str, ...]) -> Answer:
        with TemporaryFile() as out, TemporaryFile() as err:
            child = _start(argv, self._environ, out.fileno(), err.fileno())
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
            out.seek(0)
            err.seek(0)
            return _answer(status, out.read(), err.read())

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


def _argv(repo: str, options: list[str], arguments: tuple[str, ...]) -> list[str]:
    return ["git", "-C", repo, *repository_settings.ALWAYS_OFF, *options, *arguments]


def _answer(status: int | None, out: bytes, err: bytes) -> Answer:
    if status is None:
        raise Unavailable(
            "mam does not know how git ended: another part of this program collected its status"
        )
    return Answer(status, out, err.decode("utf-8", "replace"))


def _settings(place: str, ask: Callable[[tuple[str, ...]], Answer]) -> list[tuple[str, str, str]]:
    """Return the settings of a place that `switched_off` reads; `ask` gets the answer of git there."""
    answer = ask(repository_settings.LIST_PROGRAMS)
    parse = repository_settings.scoped_settings
    if answer.status == _USAGE:
        answer = ask(repository_settings.LIST_PROGRAMS_WITHOUT_SCOPE)
        parse = repository_settings.unscoped_settings
    if answer.status not in (0, 1):
        raise from_stderr(answer.err, place)
    return parse(answer.out)


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


def _start(argv: list[str], environ: Mapping[str, str], out: int, err: int) -> child_process.Child:
    """Start git, or raise GitMissing or Unavailable.

    A Ctrl-C before the pid is known would leave git running, so it is raised after that.
    """
    interrupts: list[tuple[int, FrameType | None]] = []
    before = signal.getsignal(signal.SIGINT)
    defers = callable(before) and current_thread() is main_thread()
    if defers:
        signal.signal(signal.SIGINT, lambda number, frame: interrupts.append((number, frame)))
    child = None
    try:
        child = child_process.start(argv, environ, session=True, out=out, err=err)
        return child
    except FileNotFoundError as cause:
        raise GitMissing("git is not on PATH", hint="install git, or leave out --worktree") from cause
    except OSError as cause:
        raise Unavailable(f"git cannot be started: {cause.strerror}") from cause
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
