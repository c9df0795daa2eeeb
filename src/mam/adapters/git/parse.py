"""What git prints for programs, as values. Pure."""

from __future__ import annotations

import os
from typing import NamedTuple

_BRANCH = "refs/heads/"


class Entry(NamedTuple):
    """One worktree that a repository knows, whether its folder is there or not."""

    path: str
    head: str | None = None
    branch: str | None = None
    bare: bool = False
    locked: bool = False
    prunable: bool = False


def entries(answer: bytes, end: bytes = b"\0") -> list[Entry]:
    """Return what `worktree list --porcelain -z` names, the main worktree first.

    Without `-z` (before git 2.36) a line ends where otherwise a zero byte is; a path with a line break
    in it is then cut short, and so is never found.
    """
    found = []
    for block in answer.split(end + end):
        fields = dict(_field(part) for part in block.split(end) if part)
        if "worktree" in fields:
            found.append(_entry(fields))
    return found


def _field(part: bytes) -> tuple[str, str]:
    key, _, value = part.partition(b" ")
    return os.fsdecode(key), os.fsdecode(value)


def _entry(fields: dict[str, str]) -> Entry:
    return Entry(
        fields["worktree"],
        fields.get("HEAD"),
        branch_of(fields["branch"]) if "branch" in fields else None,
        "bare" in fields,
        "locked" in fields,
        "prunable" in fields,
    )


def branch_of(ref: str) -> str:
    """Return the short name of a branch's full one."""
    return ref.removeprefix(_BRANCH)


def changes(answer: bytes) -> tuple[str, ...]:
    """Return the paths that `status --porcelain=v1 -z --no-renames` names."""
    return tuple(os.fsdecode(part[3:]) for part in answer.split(b"\0") if part)


def lines(answer: bytes) -> list[str]:
    """Return one value per line; for values that cannot hold a line break, as names of refs."""
    return [os.fsdecode(line) for line in answer.split(b"\n") if line]
