"""Worktrees of a git repository: finds, adds, inspects and removes them.

mam never uses `--force`. git runs none of the repository's hooks and filters, see `run_git.py`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from typing import NamedTuple

from mam.adapters.git import error_translation, parse
from mam.adapters.git.branches import Branches
from mam.adapters.git.run_git import READ_SECONDS, WRITE_SECONDS, Program
from mam.adapters.system import process
from mam.core.errors import MamError, Refused, Unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.git.parse import Entry
    from mam.adapters.system.process import Identity

_NOT_A_WORKTREE = ("not a git repository", "must be run in a work tree")
# This file lies in git's folder for the worktree, and git removes it with the worktree.
_SIGNATURE = "mam"


class WorktreeState(NamedTuple):
    """What removing a worktree would lose: its branch (None if detached), its commit, and its changes."""

    branch: str | None
    head: str | None
    changes: tuple[str, ...]
    unmerged: int

    @property
    def uncommitted(self) -> bool:
        """Whether a file is changed, staged, or untracked and not ignored."""
        return bool(self.changes)


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
        """Store the environment for git; run nothing yet."""
        self._git = Program(environ, read_seconds=read_seconds, write_seconds=write_seconds)
        self.branches = Branches(self._git)

    def toplevel(self, path: str) -> str | None:
        """Return the top folder of the working tree that holds a directory, or None."""
        answer = self._git.ask(path, "rev-parse", "--show-toplevel", accept=(0, 128))
        if answer.status == 0:
            return answer.line
        if any(phrase in answer.err for phrase in _NOT_A_WORKTREE):
            return None
        raise error_translation.from_stderr(answer.err, path)

    def main(self, top: str) -> str:
        """Return the top folder of the main working tree of a worktree.

        A bare repository has no main working tree; then this is the folder of the repository.
        """
        listed = self.entries(top)
        if not any(_same(entry.path, top) for entry in listed[1:]):
            return top
        # For a submodule git prints the folder of its repository, from which git can find the working tree.
        return self.toplevel(listed[0].path) or listed[0].path

    def entries(self, repo: str) -> list[Entry]:
        """Return every worktree that is registered in the repository, the main one first."""
        answer = self._git.ask(repo, "worktree", "list", "--porcelain", "-z", accept=(0, 129))
        if answer.status == 129:
            return parse.entries(self._git.ask(repo, "worktree", "list", "--porcelain").out, b"\n")
        return parse.entries(answer.out)

    def entry(self, repo: str, path: str) -> Entry | None:
        """Return the registered worktree at a path, or None."""
        return next((entry for entry in self.entries(repo) if _same(entry.path, path)), None)

    def is_registered(self, repo: str, path: str) -> bool:
        """Tell whether a worktree is registered at a path, even if its folder is missing."""
        return self.entry(repo, path) is not None

    def has_directory(self, repo: str, commit: str, folder: str) -> bool:
        """Tell whether a commit holds a directory; `folder` is relative to the top."""
        answer = self._git.ask(repo, "cat-file", "-t", f"{commit}:{folder}", accept=(0, 128))
        return answer.out == b"tree\n"

    def add(self, repo: str, path: str, branch: str, *, base: str = "HEAD") -> bool:
        """Add a worktree on a branch; create the branch at base if there is none, and tell that.

        After a failure everything is undone, including the branch. Raises InvalidName for a bad branch name,
        InvalidPath outside a repository, and Refused if the path exists, if another worktree has the branch
        checked out, or if the repository has no commit.
        """
        self.branches.check(branch)
        if os.path.lexists(path):
            raise Refused(f"{path} exists already", hint="name another path, or move it away")
        tip = self.branches.tip(repo, branch)
        start = tip or self.branches.commit(repo, base)
        if start is None:
            raise no_commits(repo)
        self._refuse_second_checkout(repo, branch)
        if tip is None:
            self.branches.create(repo, branch, base)
        try:
            self._add(repo, path, branch)
        except BaseException:
            if tip is None:
                with contextlib.suppress(MamError):
                    self.delete_branch(repo, branch, start)
            raise
        return tip is None

    def _add(self, repo: str, path: str, branch: str) -> None:
        try:
            self._git.change(repo, "worktree", "add", "--quiet", "--", path, branch)
        except BaseException:
            # If git refuses, it leaves nothing. If mam ended it, it may leave a complete worktree.
            with contextlib.suppress(MamError):
                if self._is_on(repo, path, branch):
                    self.remove(repo, path)
            raise

    def _is_on(self, repo: str, path: str, branch: str) -> bool:
        entry = self.entry(repo, path)
        return entry is not None and entry.branch == branch and os.path.isdir(path)

    def _refuse_second_checkout(self, repo: str, branch: str) -> None:
        holder = self._holder(repo, branch)
        if holder is None:
            return
        hint = "name another branch, or leave it out for a new one"
        if holder.prunable:
            hint = f"the folder does not exist any more: git -C {shlex.quote(repo)} worktree prune"
        raise Refused(f"the branch '{branch}' is checked out at {holder.path}", hint=hint)

    def _holder(self, repo: str, branch: str) -> Entry | None:
        return next((entry for entry in self.entries(repo) if entry.branch == branch), None)

    def state(self, path: str) -> WorktreeState:
        """Return the work that exists only in this worktree, without ignored files. Writes nothing.

        Raises Refused for a folder that is not a worktree, because git would answer for the repository around
        it.
        """
        self._require_worktree(path)
        status, changes = self._status(path)
        unmerged = self.branches.unmerged(path, status.head, status.branch) if status.head else 0
        return WorktreeState(status.branch, status.head, changes, unmerged)

    def _status(self, path: str) -> tuple[parse.Status, tuple[str, ...]]:
        """Return the status of a working tree, and all changes in it with those in its submodules.

        git itself would run a status in each submodule, and there the programs of the submodule's settings.
        """
        answer = self._git.ask(path, *parse.status_arguments("normal"))
        status = parse.status(answer.out)
        changed = [
            name
            for name in parse.submodules(self._git.ask(path, "ls-files", "--stage", "-z").out)
            if name not in status.changes and self._has_changes(os.path.join(path, name))
        ]
        return status, (*status.changes, *changed)

    def _has_changes(self, submodule: str) -> bool:
        if not os.path.lexists(os.path.join(submodule, ".git")):
            return False
        self._require_worktree(submodule)
        return bool(self._status(submodule)[1])

    def _require_worktree(self, path: str) -> None:
        top = self.toplevel(path) if os.path.isdir(path) else None
        # For a symbolic link git would answer about the target.
        if top is None or os.path.islink(path) or not _same(top, path):
            raise Refused(
                f"{path} is not a git worktree any more", hint="check its content, and remove it by hand"
            )

    def remove(self, repo: str, path: str) -> None:
        """Remove a worktree, or the registration of a worktree without a folder; a second call is harmless.

        git refuses if a file in the worktree is changed or untracked, or if the worktree is locked.
        """
        if os.path.islink(path) or not self.is_registered(repo, path):
            if os.path.lexists(path):
                raise Refused(
                    f"{path} is not a worktree of {repo}", hint="check its content, and remove it by hand"
                )
            return
        # The option overrides the user's setting, which may hide untracked files from git's check.
        self._git.change(
            repo, "-c", "status.showUntrackedFiles=normal", "worktree", "remove", "--", path, also=path
        )

    def delete_branch(self, repo: str, branch: str, commit: str) -> bool:
        """Delete a branch if it is at this commit and no worktree has it; tell whether it was deleted."""
        return self._holder(repo, branch) is None and self.branches.delete(repo, branch, commit)

    def workers(self, repo: str, path: str, branch: str) -> set[Identity]:
        """Return the git processes that work on a worktree or its branch, as mam starts them."""
        workers = set()
        for pid in process.pids():
            words = process.command_line(pid) or []
            if {"-C", repo}.issubset(words) and (path in words or branch in words):
                identity = process.identify(pid)
                workers |= {identity} if identity is not None else set()
        return workers

    def sign(self, path: str, text: str) -> None:
        """Write a note into git's folder for a worktree; git removes it with the worktree."""
        try:
            with open(self._signature_file(path), "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as cause:
            raise Unavailable(f"mam cannot write into git's folder for {path}: {cause.strerror}") from cause

    def signature(self, path: str) -> str | None:
        """Return the note in git's folder for a worktree."""
        try:
            with open(self._signature_file(path), encoding="utf-8") as file:
                return file.read(10_000)
        except (OSError, UnicodeDecodeError):
            return None

    def _signature_file(self, path: str) -> str:
        return os.path.join(self._git.ask(path, "rev-parse", "--absolute-git-dir").line, _SIGNATURE)


def no_commits(repo: str) -> Refused:
    """Return the error for a repository without commits."""
    return Refused(
        f"the repository {repo} has no commit yet", hint="git commit first; a worktree starts from a commit"
    )


def _same(path: str, other: str) -> bool:
    return path == other or os.path.realpath(path) == os.path.realpath(other)
