"""Finds programs on PATH, suggests names for a mistyped one, and reads versions."""

from __future__ import annotations

import os
import re
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*(?:[-+.][0-9A-Za-z]+)*")
# A program lies at most this deep in its package.
_DEPTH = 4
_LARGEST_PACKAGE = 1024 * 1024
ABSENT = "does not exist here"


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


def file_problem(path: str) -> str | None:
    """Return in words why a path leads to no regular file; None if it does."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return ABSENT
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if stat.S_ISDIR(mode):
        return "is a directory"
    return None if stat.S_ISREG(mode) else "is not a regular file"


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
        name = package.get("name") if isinstance(package, dict) else None
        if isinstance(name, str) and name in names:
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
