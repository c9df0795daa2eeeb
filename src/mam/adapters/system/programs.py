"""Finding programs on PATH, and what a mistyped one may have meant."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


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
