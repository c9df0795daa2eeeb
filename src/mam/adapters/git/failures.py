"""What git says when it fails, as our errors."""

from __future__ import annotations

from mam.core.errors import DiskFull, InvalidPath, MamError, NotAllowed, ReadOnly, Refused, Unavailable
from mam.core.safe_text import one_line


class GitMissing(Unavailable):
    """git is not installed."""

    code, retryable = "git_missing", False


_WAYS_OUT = (
    ("containing submodules", "git removes such a worktree only with git worktree remove --force, by hand"),
    ("locked working tree", "git worktree unlock it, and repeat"),
    ("cannot lock ref", "another branch has a name that is part of this one, or the other way round"),
)


def from_stderr(text: str, repo: str) -> MamError:
    """Return the error that git's words stand for; the caller raises it."""
    said = reason(text)
    if "not a git repository" in said or "must be run in a work tree" in said:
        return InvalidPath(
            f"{repo} is not inside a git working tree", hint="git init, or leave out --worktree"
        )
    if said.startswith("cannot change to"):
        return InvalidPath(f"{repo} is gone or not a directory", hint="name one that exists")
    if "dubious ownership" in said or said.startswith("unsafe repository"):
        return NotAllowed(
            f"git does not trust {repo}: it belongs to another user",
            hint="git config --global --add safe.directory DIR, if you trust what is in it",
        )
    if "modified or untracked files" in said:
        return Refused("the worktree has uncommitted changes", hint="commit them, and repeat")
    if "No space left on device" in text:
        return DiskFull(f"git: {said}")
    if ".lock': File exists" in text:
        return Unavailable(f"git: {said}", hint="another git is at work; repeat when it is done")
    if "Permission denied" in text or "Read-only file system" in text:
        return ReadOnly(f"git: {said}")
    hint = next((way for words, way in _WAYS_OUT if words in said), None)
    return Refused(f"git: {said}", hint=hint)


def is_passing(text: str) -> bool:
    """Tell whether git met a worktree that another git is just making or removing.

    git (seen with 2.39) then ends before it has done anything, whichever worktree it was asked about.
    """
    return "failed to read " in text and "/worktrees/" in text


def reason(text: str) -> str:
    """Return the line that says why: the first fatal one, else the first error, else the last."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for mark in ("fatal: ", "error: "):
        for line in lines:
            if line.startswith(mark):
                return one_line(line.removeprefix(mark), 300)
    return one_line(lines[-1], 300) if lines else "no reason given"
