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


class Status(NamedTuple):
    """Where a worktree is, and the paths in it that differ from there."""

    head: str | None
    branch: str | None
    changes: tuple[str, ...]


# How many words stand before the path in a line of each kind: changed, in conflict, untracked.
_WORDS = {"1": 8, "u": 10, "?": 1}


def status(answer: bytes) -> Status:
    """Return what `status --porcelain=v2 -z --branch --no-renames` says."""
    known = {"branch.oid": "(initial)", "branch.head": "(detached)"}
    changes = []
    for line in map(os.fsdecode, answer.split(b"\0")):
        kind, _, rest = line.partition(" ")
        if kind == "#":
            key, _, value = rest.partition(" ")
            known[key] = value
        elif kind in _WORDS:
            changes.append(line.split(" ", _WORDS[kind])[-1])
    head, branch = known["branch.oid"], known["branch.head"]
    return Status(
        None if head == "(initial)" else head, None if branch == "(detached)" else branch, tuple(changes)
    )


def lines(answer: bytes) -> list[str]:
    """Return one value per line; for values that cannot hold a line break, as names of refs."""
    return [os.fsdecode(line) for line in answer.split(b"\n") if line]
