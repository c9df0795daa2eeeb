"""Finds programs on PATH, suggests names for a mistyped one, reads versions, and runs programs apart."""

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
# For a program that has closed its output and has not ended.
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


def similar(name: str, path: str, candidates: Iterable[str] = ()) -> list[str]:
    """Return at most three similar names, best first: of `candidates`, then of the programs on path."""
    import difflib

    choices = list(candidates)
    names = difflib.get_close_matches(name, choices, 3, 0.6)
    if len(names) < 3:
        programs = difflib.get_close_matches(name, sorted(_programs(path) - set(choices)), 3, 0.75)
        names += programs[: 3 - len(names)]
    return names


def package_version(program: str, packages: Iterable[str]) -> str | None:
    """Return the version in the npm package of a program; None if the program is in none of `packages`."""
    import json

    names = set(packages)
    folder = os.path.dirname(os.path.realpath(program))
    for _ in range(_DEPTH if names else 0):
        try:
            package = json.loads(read_plain(os.path.join(folder, "package.json"), _LARGEST_PACKAGE))
        except (OSError, ValueError, RecursionError):
            package = None
        if isinstance(package, dict) and package.get("name") in names:
            return parse_version(str(package.get("version") or ""))
        folder = os.path.dirname(folder)
    return None


def read_plain(path: str, largest: int) -> bytes:
    """Return the content of a regular file of at most `largest` bytes; raise OSError for anything else."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > largest:
            raise OSError(f"{path} is not a regular file of a sensible size")
        return file.read(largest)


def parse_version(text: str) -> str | None:
    """Return the first version number in a program's output."""
    match = _VERSION.search(text)
    return match[0] if match else None


class Result:
    """How a program ended, and the end of its output; a status of None means that it did not end in time."""

    __slots__ = ("output", "status")

    def __init__(self, status: int | None, output: str) -> None:
        self.status = status
        self.output = output


class Running:
    """A program that runs at the same time as mam, without mam's terminal and signals."""

    def __init__(self, argv: list[str], environ: Mapping[str, str], cwd: str = "/") -> None:
        """Start the program; if that fails, `finish` returns the reason."""
        self._child: child_process.Child | None = None
        self._failure = ""
        try:
            self._child = child_process.start(argv, environ, cwd=cwd, session=True, err=child_process.MERGED)
        except OSError as error:
            self._failure = error.strerror or str(error)

    @property
    def pid(self) -> int | None:
        """The pid of the program, which leads a session of its own; None if it could not be started."""
        return None if self._child is None else self._child.pid

    def cancel(self) -> None:
        """End the program and what it started; nobody wants its answer any more."""
        if self._child is not None:
            self._child.cancel()

    def has_ended(self, seconds: float) -> bool:
        """Tell whether the program ends within so many seconds; do not read its output."""
        if self._child is None:
            return True
        try:
            self._child.wait(seconds)
        except child_process.OutOfTime:
            return False
        return True

    def finish(self, seconds: float) -> Result:
        """Wait for the end; kill the program with its group if it takes too long or prints too much."""
        if self._child is None:
            return Result(None, self._failure)
        try:
            answer = self._child.finish(seconds, most=_MOST_PRINTED, last_seconds=_LAST_SECONDS)
        except child_process.OutOfTime:
            return Result(None, "")
        # Another part of this process reaped it, so the real status is unknown and counts as a failure.
        status = -1 if answer.status is None else answer.status
        return Result(status, answer.out[-_LONGEST_ANSWER:].decode("utf-8", "replace").strip())


def detach(argv: list[str], environ: Mapping[str, str], cwd: str) -> bool:
    """Start a program that outlives this process and is not its child; False if the start failed."""
    # The shell starts the program and ends at once, so that this process need not reap the program.
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
