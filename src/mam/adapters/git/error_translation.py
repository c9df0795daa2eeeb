"""Turns the error messages of git into errors of mam."""

from __future__ import annotations

from mam.core.errors import DiskFull, InvalidPath, MamError, NotAllowed, ReadOnly, Refused, Unavailable
from mam.core.safe_text import one_line


class GitMissing(Unavailable):
    """git is not installed."""

    code, retryable = "git_missing", False


# The words of git with and without GIT_NO_LAZY_FETCH.
_LACKS = ("lazy fetching disabled", "transport '")
_HINTS = (
    ("containing submodules", "git removes such a worktree only with git worktree remove --force, by hand"),
    ("locked working tree", "unlock it with git worktree unlock, and repeat the command"),
    ("cannot lock ref", "another branch has a name that is part of this one, or the other way round"),
)


def from_stderr(text: str, repo: str) -> MamError:
    """Return the error for git's stderr; the caller raises it."""
    message = reason(text)
    if "not a git repository" in message or "must be run in a work tree" in message:
        return InvalidPath(
            f"{repo} is not inside a git working tree", hint="git init, or leave out --worktree"
        )
    if message.startswith("cannot change to"):
        return InvalidPath(
            f"{repo} does not exist or is not a directory", hint="name a directory that exists"
        )
    if "dubious ownership" in message or message.startswith("unsafe repository"):
        return NotAllowed(
            f"git does not trust {repo}: it belongs to another user",
            hint="git config --global --add safe.directory DIR, if you trust what is in it",
        )
    if "modified or untracked files" in message:
        return Refused("the worktree has uncommitted changes", hint="commit them, and repeat the command")
    if "No space left on device" in text:
        return DiskFull(f"git: {message}")
    if ".lock': File exists" in text:
        return Unavailable(
            f"git: {message}", hint="another git process is at work; repeat the command when it is done"
        )
    if "Permission denied" in text or "Read-only file system" in text:
        return ReadOnly(f"git: {message}")
    if any(phrase in text for phrase in _LACKS):
        return Refused(
            f"git: {message}",
            hint="the clone lacks something, and mam fetches nothing: fetch it with git yourself, and repeat",
        )
    hint = next((hint_text for phrase, hint_text in _HINTS if phrase in message), None)
    return Refused(f"git: {message}", hint=hint)


def is_temporary(text: str) -> bool:
    """Tell whether git failed because another git process is adding or removing a worktree.

    git 2.39 then ends before it has done anything, also if the command is about another worktree.
    """
    return "failed to read " in text and "/worktrees/" in text


def reason(text: str) -> str:
    """Return the line with the reason: the first `fatal:`, else the first `error:`, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for mark in ("fatal: ", "error: "):
        for line in lines:
            if line.startswith(mark):
                return one_line(line.removeprefix(mark), 300)
    return one_line(lines[-1], 300) if lines else "git gave no reason"
