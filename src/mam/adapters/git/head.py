"""Finds the git folder of a directory and reads its HEAD, without git.

Whoever made the folder may have put anything there. Only regular files are read, no HEAD that is a symbolic
link, and a few thousand bytes of each, so nothing blocks and nothing is large.
"""

from __future__ import annotations

import os
import stat
from typing import NamedTuple

_GIT = ".git"
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
# A path has at most 4096 bytes, and the name of a branch must fit into one.
_MOST = 4200
_FOLDER, _REF, _BRANCH = b"gitdir: ", b"ref:", b"refs/heads/"
# What HEAD says in a repository that keeps its refs in tables (reftable).
IN_TABLES = ".invalid"
# The lengths of a commit's id: SHA-1 and SHA-256.
_ID_LENGTHS = (40, 64)
_DIGITS = frozenset(b"0123456789abcdef")


class Head(NamedTuple):
    """What HEAD names: a branch, which may have no commit yet, or else the id of a commit."""

    branch: str | None
    commit: str | None


def head(directory: str) -> Head | None:
    """Return the HEAD of the work tree that holds a directory; None without one, or with a strange one.

    `directory` has no symbolic links. A bare repository is no work tree. The branch is IN_TABLES in a
    repository whose refs only git can read.
    """
    folder = directory
    while True:
        git_folder = _git_folder(folder)
        if git_folder is not None:
            content = _content(os.path.join(git_folder, "HEAD"))
            if content is not None:
                return parse_head(content)
            if not os.path.isdir(os.path.join(folder, _GIT)):
                return None
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _git_folder(folder: str) -> str | None:
    """Return the git folder that `.git` in a folder is or names; None if there is no `.git`."""
    path = os.path.join(folder, _GIT)
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISREG(mode):
        named = parse_git_file(_content(path) or b"")
        # A bad file ends the search, as it does in git.
        return os.path.join(folder, os.fsdecode(named)) if named else path
    return path


def _content(path: str) -> bytes | None:
    """Return the content of a small regular file, nothing of any other file, and None if there is no file."""
    try:
        handle = os.open(path, _FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return b""
    try:
        is_regular = stat.S_ISREG(os.fstat(handle).st_mode)
        content = os.read(handle, _MOST + 1) if is_regular else b""
    except OSError:
        return b""
    finally:
        os.close(handle)
    return content if len(content) <= _MOST else b""


def parse_git_file(content: bytes) -> bytes | None:
    """Return the folder that the content of a `.git` file names, or None."""
    named = content.rstrip(b"\r\n")
    if not named.startswith(_FOLDER) or b"\0" in named:
        return None
    return named.removeprefix(_FOLDER) or None


def parse_head(content: bytes) -> Head | None:
    """Return what the content of a HEAD file names, or None."""
    if content.startswith(_REF):
        ref = content.removeprefix(_REF).strip()
        branch = ref.removeprefix(_BRANCH)
        is_branch = branch not in (ref, b"") and len(branch.splitlines()) == 1 and b"\0" not in branch
        return Head(os.fsdecode(branch), None) if is_branch else None
    commit = content.strip()
    if len(commit) in _ID_LENGTHS and _DIGITS.issuperset(commit):
        return Head(None, commit.decode("ascii"))
    return None
