"""Worktrees of a git repository: find, add, look into, remove.

Nothing here is ever forced. The repository's own post-checkout hook runs when a worktree is added, as
it does for every user of git; when it fails the worktree is there all the same, which is what git
does, and its words are handed to the caller.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from typing import NamedTuple

from mam.adapters.git import failures, parse
from mam.adapters.git.branches import Branches
from mam.adapters.git.run_git import READ_SECONDS, WRITE_SECONDS, Program
from mam.core.errors import MamError, Refused, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.git.parse import Entry

_NOT_A_WORKTREE = ("not a git repository", "must be run in a work tree")
# Lies in git's own folder of the worktree, and goes with it.
_SIGNATURE = "mam"


class WorktreeState(NamedTuple):
    """What would be lost with a worktree: its branch (None if detached), its commit, and its work."""

    branch: str | None
    head: str | None
    changes: tuple[str, ...]
    unmerged: int

    @property
    def uncommitted(self) -> bool:
        """Whether a file is changed, staged, or untracked and not ignored."""
        return bool(self.changes)


class Added(NamedTuple):
    """How a worktree was added: whether the branch was made for it, and what a failing hook said."""

    branch_made: bool
    hook_failure: str | None


class Worktrees:
    """The worktrees of the repositories that a git program reaches."""

    __slots__ = ("_git", "branches")

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        read_seconds: float = READ_SECONDS,
        write_seconds: float = WRITE_SECONDS,
    ) -> None:
        """Take the environment that git is run with; nothing is run yet."""
        self._git = Program(environ, read_seconds=read_seconds, write_seconds=write_seconds)
        self.branches = Branches(self._git)

    def toplevel(self, path: str) -> str | None:
        """Return the top of the working tree that a directory is in, or None if it is in none."""
        answer = self._git.ask(path, "rev-parse", "--show-toplevel", accept=(0, 128))
        if answer.status == 0:
            return answer.line
        if any(words in answer.err for words in _NOT_A_WORKTREE):
            return None
        raise failures.from_stderr(answer.err, path)

    def main(self, top: str) -> str:
        """Return the top of the main working tree that a worktree belongs to.

        A bare repository has none; its own folder stands for it.
        """
        listed = self.entries(top)
        if not any(_same(entry.path, top) for entry in listed[1:]):
            return top
        # For a submodule git names the folder of its repository, which knows its working tree.
        return self.toplevel(listed[0].path) or listed[0].path

    def entries(self, repo: str) -> list[Entry]:
        """Return every worktree that the repository knows, the main one first."""
        answer = self._git.ask(repo, "worktree", "list", "--porcelain", "-z", accept=(0, 129))
        if answer.status == 129:
            return parse.entries(self._git.ask(repo, "worktree", "list", "--porcelain").out, b"\n")
        return parse.entries(answer.out)

    def entry(self, repo: str, path: str) -> Entry | None:
        """Return what the repository knows about the worktree at a path."""
        return next((entry for entry in self.entries(repo) if _same(entry.path, path)), None)

    def is_registered(self, repo: str, path: str) -> bool:
        """Tell whether the repository knows a worktree at a path, be its folder there or not."""
        return self.entry(repo, path) is not None

    def has_directory(self, repo: str, commit: str, folder: str) -> bool:
        """Tell whether a commit holds a directory, given from the top."""
        answer = self._git.ask(repo, "cat-file", "-t", f"{commit}:{folder}", accept=(0, 128))
        return answer.out == b"tree\n"

    def add(self, repo: str, path: str, branch: str, *, base: str = "HEAD") -> Added:
        """Make a worktree on a branch; the branch is made at base if it does not exist.

        Whatever fails on the way is taken back, the branch included. Raises InvalidName for a branch name,
        InvalidPath outside of a repository, and Refused for a path that exists, a branch that another
        worktree is on, and a repository without a commit.
        """
        self.branches.check(branch)
        if os.path.lexists(path):
            raise Refused(f"{path} exists already", hint="name another place, or move it away")
        tip = self.branches.tip(repo, branch)
        start = tip or self.branches.commit(repo, base)
        if start is None:
            raise no_commits(repo)
        self._refuse_second_checkout(repo, branch)
        if tip is None:
            self.branches.create(repo, branch, base)
        try:
            return Added(tip is None, self._add(repo, path, branch))
        except BaseException:
            if tip is None:
                with contextlib.suppress(MamError):
                    self.delete_branch(repo, branch, start)
            raise

    def _add(self, repo: str, path: str, branch: str) -> str | None:
        try:
            answer = self._git.run(repo, ("worktree", "add", "--quiet", "--", path, branch))
        except BaseException:
            # git was ended. Had it come as far as the hook, it leaves a complete worktree behind.
            with contextlib.suppress(MamError):
                if self._is_on(repo, path, branch):
                    self.remove(repo, path)
            raise
        if answer.status == 0:
            return None
        # A refusal of git ends with 128 and leaves nothing. Where a complete worktree is, the hook failed.
        if 0 < answer.status != 128 and self._is_on(repo, path, branch):
            return f"exit {answer.status}: {failures.reason(answer.err)}"
        raise failures.from_stderr(answer.err, repo)

    def _is_on(self, repo: str, path: str, branch: str) -> bool:
        entry = self.entry(repo, path)
        return entry is not None and entry.branch == branch and os.path.isdir(path)

    def _refuse_second_checkout(self, repo: str, branch: str) -> None:
        holder = self._holder(repo, branch)
        if holder is None:
            return
        hint = "name another branch, or none for a new one"
        if holder.prunable:
            hint = f"its folder is gone: git -C {shlex.quote(repo)} worktree prune"
        raise Refused(f"the branch '{branch}' is checked out at {holder.path}", hint=hint)

    def _holder(self, repo: str, branch: str) -> Entry | None:
        return next((entry for entry in self.entries(repo) if entry.branch == branch), None)

    def state(self, path: str) -> WorktreeState:
        """Return what is in a worktree that is nowhere else; ignored files do not count. Writes nothing.

        Raises Refused for a folder that is no worktree: git would answer for the repository around it.
        """
        self._require_worktree(path)
        # Not the user's settings: they may hide untracked files, and changes inside of submodules.
        answer = self._git.ask(
            path,
            "--no-optional-locks",
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--no-ahead-behind",
            "--no-renames",
            "--untracked-files=normal",
            "--ignore-submodules=none",
        )
        found = parse.status(answer.out)
        unmerged = self.branches.unmerged(path, found.head, found.branch) if found.head else 0
        return WorktreeState(found.branch, found.head, found.changes, unmerged)

    def _require_worktree(self, path: str) -> None:
        top = self.toplevel(path) if os.path.isdir(path) else None
        # Through a link git would speak of what it leads to.
        if top is None or os.path.islink(path) or not _same(top, path):
            raise Refused(
                f"{path} is not a git worktree any more", hint="look into it, and remove it by hand"
            )

    def remove(self, repo: str, path: str) -> None:
        """Remove a worktree, or the registration of one whose folder is gone; repeats safely.

        git refuses while a file in it is changed or untracked, and while it is locked.
        """
        if os.path.islink(path) or not self.is_registered(repo, path):
            if os.path.lexists(path):
                raise Refused(
                    f"{path} is not a worktree of {repo}", hint="look into it, and remove it by hand"
                )
            return
        # git's own look goes by the user's settings, which may hide untracked files.
        self._git.change(repo, "-c", "status.showUntrackedFiles=normal", "worktree", "remove", "--", path)

    def delete_branch(self, repo: str, branch: str, commit: str) -> bool:
        """Delete a branch that is still at this commit and that no worktree is on; tell whether it was."""
        return self._holder(repo, branch) is None and self.branches.delete(repo, branch, commit)

    def sign(self, path: str, text: str) -> None:
        """Leave a note beside a worktree, in git's own folder for it, that goes when the worktree goes."""
        try:
            with open(self._signature_file(path), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as cause:
            raise Unavailable(f"git's folder of {path} cannot be written: {cause.strerror}") from cause

    def signature(self, path: str) -> str | None:
        """Return the note that was left beside a worktree."""
        try:
            with open(self._signature_file(path), encoding="utf-8") as file:
                return file.read(10_000)
        except (OSError, UnicodeDecodeError):
            return None

    def _signature_file(self, path: str) -> str:
        return os.path.join(self._git.ask(path, "rev-parse", "--absolute-git-dir").line, _SIGNATURE)


def no_commits(repo: str) -> Refused:
    """Return the error for a repository that nothing can be checked out from."""
    return Refused(
        f"the repository {repo} has no commit yet", hint="git commit first; a worktree starts from a commit"
    )


def _same(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)
