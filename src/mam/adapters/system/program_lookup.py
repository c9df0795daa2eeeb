"""Finding programs on PATH, what a mistyped one may have meant, and which version one is."""

from __future__ import annotations

import os
import re
import stat

from mam.adapters.system import child_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:[-+.][0-9A-Za-z]+)*")
# A program lies at most this deep in its package.
_DEPTH = 4
_LONGEST_ANSWER = 4096
_MOST_PRINTED = 1024 * 1024
# For one that has closed its output and has not ended.
_LAST_SECONDS = 1.0
_LARGEST_PACKAGE = 1024 * 1024
_DETACH_SECONDS = 5.0


def which(name: str, path: str) -> str | None:
    """Return the full path of a program: the first executable file of that name in path.

    A name with a slash is taken as it is, from the current directory if it is relative.
    """
    if not name or "\0" in name:
        return None
    if "/" in name:
        return os.path.abspath(name) if _is_program(name) else None
    for directory in path.split(os.pathsep):
        candidate = os.path.join(directory or ".", name)
        if _is_program(candidate):
            return os.path.abspath(candidate)
    return None


def similar(name: str, path: str, known: Iterable[str] = ()) -> list[str]:
    """Return at most three names that may have been meant, best first: known words, then programs."""
    import difflib

    words = list(known)
    found = difflib.get_close_matches(name, words, 3, 0.6)
    if len(found) < 3:
        others = difflib.get_close_matches(name, sorted(_programs(path) - set(words)), 3, 0.75)
        found += others[: 3 - len(found)]
    return found


def package_version(program: str, packages: Iterable[str]) -> str | None:
    """Return the version that the npm package of a program names; None where it is of no such package."""
    import json

    wanted = set(packages)
    folder = os.path.dirname(os.path.realpath(program))
    for _ in range(_DEPTH if wanted else 0):
        try:
            found = json.loads(read_plain(os.path.join(folder, "package.json"), _LARGEST_PACKAGE))
        except (OSError, ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and found.get("name") in wanted:
            return parse_version(str(found.get("version") or ""))
        folder = os.path.dirname(folder)
    return None


def read_plain(path: str, largest: int) -> bytes:
    """Return the content of a regular file of at most so many bytes; raises OSError for anything else."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > largest:
            raise OSError(f"{path} is not a regular file of a sensible size")
        return file.read(largest)


def parse_version(text: str) -> str | None:
    """Return the first version in what a program prints of itself."""
    found = _VERSION.search(text)
    return found[0] if found else None


class Done:
    """How a program ended, and what it printed last; a status of None means that it did not end in time."""

    __slots__ = ("status", "words")

    def __init__(self, status: int | None, words: str) -> None:
        self.status = status
        self.words = words


class Running:
    """A program that runs beside us, apart from our terminal and signals."""

    def __init__(self, argv: list[str], environ: Mapping[str, str], cwd: str = "/") -> None:
        """Start it; one that cannot be started has nothing to say."""
        self._child: child_process.Child | None = None
        self._why = ""
        try:
            self._child = child_process.start(argv, environ, cwd=cwd, session=True, err=child_process.MERGED)
        except OSError as error:
            self._why = error.strerror or str(error)

    @property
    def pid(self) -> int | None:
        """Its process, which leads a session of its own; None if it could not be started."""
        return None if self._child is None else self._child.pid

    def cancel(self) -> None:
        """End it with what it started; nobody wants its answer any more."""
        if self._child is not None:
            self._child.cancel()

    def has_ended(self, seconds: float) -> bool:
        """Tell whether it ends within so long; what it prints is not read."""
        if self._child is None:
            return True
        try:
            self._child.wait(seconds)
        except child_process.OutOfTime:
            return False
        return True

    def finish(self, seconds: float) -> Done:
        """Wait for its end; one that outlasts the time, or prints without end, is killed with its group."""
        if self._child is None:
            return Done(None, self._why)
        try:
            answer = self._child.finish(seconds, most=_MOST_PRINTED, last_seconds=_LAST_SECONDS)
        except child_process.OutOfTime:
            return Done(None, "")
        # Somebody else collected it: how it ended is unknown, and nothing to build on.
        status = -1 if answer.status is None else answer.status
        return Done(status, answer.out[-_LONGEST_ANSWER:].decode("utf-8", "replace").strip())


def detach(argv: list[str], environ: Mapping[str, str], cwd: str) -> bool:
    """Start a program that outlives us and is nobody's child; False if that could not even begin."""
    # The shell starts it and ends at once, so that no zombie waits for us.
    script = 'cd "$1" && shift && "$@" </dev/null >/dev/null 2>&1 &'
    return Running(["/bin/sh", "-c", script, "sh", cwd, *argv], environ).finish(_DETACH_SECONDS).status == 0


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _programs(path: str) -> set[str]:
    names: set[str] = set()
    for directory in path.split(os.pathsep):
        try:
            with os.scandir(directory or ".") as entries:
                names.update(entry.name for entry in entries if _is_program(entry.path))
        except OSError:
            continue
    return names
