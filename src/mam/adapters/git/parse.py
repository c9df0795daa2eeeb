"""Parses the output that git prints for programs."""

from __future__ import annotations

import os
from typing import NamedTuple

_BRANCH = "refs/heads/"


class Entry(NamedTuple):
    """One worktree that is registered in a repository; its folder may be missing."""

    path: str
    head: str | None = None
    branch: str | None = None
    bare: bool = False
    locked: bool = False
    prunable: bool = False


def entries(answer: bytes, end: bytes = b"\0") -> list[Entry]:
    """Return the worktrees of `worktree list --porcelain -z`, the main worktree first.

    Before git 2.36 there is no `-z`, and a line break takes the place of the zero byte. A path with a line
    break is then cut short, so mam never finds that worktree.
    """
    worktrees = []
    for block in answer.split(end + end):
        fields = dict(_field(part) for part in block.split(end) if part)
        if "worktree" in fields:
            worktrees.append(_entry(fields))
    return worktrees


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
    """Return the short name of a branch for its full name."""
    return ref.removeprefix(_BRANCH)


class Status(NamedTuple):
    """The commit and branch of a worktree, and the paths that differ from that commit."""

    head: str | None
    branch: str | None
    changes: tuple[str, ...]


# The number of fields before the path in a line of each kind: changed, in conflict, untracked.
_FIELDS_BEFORE_PATH = {"1": 8, "u": 10, "?": 1}


def status_arguments(untracked: str) -> tuple[str, ...]:
    """Return the arguments of git whose answer `status` reads; `untracked` is `all`, or `normal` for folders.

    They override the user's settings, which may hide files. Submodules are compared by their commit, because
    git would run the programs of their settings in them. A renamed file counts as two, because looking for
    renames reads files.
    """
    return (
        "--no-optional-locks",
        "status",
        "--porcelain=v2",
        "-z",
        "--branch",
        "--no-ahead-behind",
        "--no-renames",
        f"--untracked-files={untracked}",
        "--ignore-submodules=dirty",
    )


def status(answer: bytes) -> Status:
    """Return the status in the answer of git to `status_arguments`."""
    headers = {"branch.oid": "(initial)", "branch.head": "(detached)"}
    changes = []
    for line in map(os.fsdecode, answer.split(b"\0")):
        kind, _, rest = line.partition(" ")
        if kind == "#":
            key, _, value = rest.partition(" ")
            headers[key] = value
        elif kind in _FIELDS_BEFORE_PATH:
            changes.append(line.split(" ", _FIELDS_BEFORE_PATH[kind])[-1])
    head, branch = headers["branch.oid"], headers["branch.head"]
    return Status(
        None if head == "(initial)" else head, None if branch == "(detached)" else branch, tuple(changes)
    )


def submodules(answer: bytes) -> list[str]:
    """Return the paths of the submodules in the output of `ls-files --stage -z`."""
    return [
        os.fsdecode(entry.partition(b"\t")[2])
        for entry in answer.split(b"\0")
        if entry.startswith(b"160000 ")
    ]


def lines(answer: bytes) -> list[str]:
    """Return one value per line, for values without line breaks, such as names of refs."""
    return [os.fsdecode(line) for line in answer.split(b"\n") if line]
