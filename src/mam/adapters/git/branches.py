"""Branches of a repository: names, commits, what is merged, and making and deleting one.

A branch is deleted only at the commit that the caller saw, so a commit made in between keeps it.
"""

from __future__ import annotations

from mam.adapters.git import parse
from mam.core.errors import InvalidName, MamError, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from mam.adapters.git.run_git import Program


class Branches:
    """The branches of the repositories that a git program reaches."""

    __slots__ = ("_git",)

    def __init__(self, git: Program) -> None:
        """Take the program to ask."""
        self._git = git

    def check(self, name: str) -> str:
        """Return the name if a branch may have it; InvalidName keeps it away from git otherwise."""
        # `@` is a branch name for git, and HEAD in every command that takes one.
        if name.startswith("-") or name == "@" or not name.isprintable():
            raise _bad_name(name)
        answer = self._git.run("/", ("check-ref-format", "--branch", name))
        # `@{-1}` is answered with the branch that it stands for.
        if answer.status or answer.line != name:
            raise _bad_name(name)
        return name

    def names(self, repo: str) -> frozenset[str]:
        """Return every local branch."""
        answer = self._git.ask(repo, "for-each-ref", "--format=%(refname)", "refs/heads")
        return frozenset(parse.branch_of(ref) for ref in parse.lines(answer.out))

    def commit(self, repo: str, revision: str) -> str | None:
        """Return the full id of the commit that a revision means, or None where there is none."""
        answer = self._git.ask(
            repo, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", accept=(0, 1)
        )
        return answer.line if answer.status == 0 else None

    def tip(self, repo: str, branch: str) -> str | None:
        """Return the commit of a local branch, or None if there is no such branch."""
        return self.commit(repo, f"refs/heads/{branch}")

    def on_remote(self, repo: str, branch: str) -> str | None:
        """Return the full name of the one remote's branch of this name; refuse to choose between several."""
        answer = self._git.ask(repo, "for-each-ref", "--format=%(refname)", f"refs/remotes/*/{branch}")
        found = parse.lines(answer.out)
        if len(found) > 1:
            raise Refused(
                f"more than one remote has a branch '{branch}'",
                hint=f"git branch {branch} REMOTE/{branch} first",
            )
        return found[0] if found else None

    def unmerged(self, repo: str, commit: str, branch: str | None) -> int:
        """Return how many commits up to this one are on no branch, local or remote, but the one named."""
        but = [f"--exclude={branch}"] if branch else []
        answer = self._git.ask(repo, "rev-list", "--count", commit, "--not", *but, "--branches", "--remotes")
        return int(answer.line)

    def create(self, repo: str, branch: str, base: str) -> None:
        """Make a branch; one that exists is refused. A remote's branch as base is tracked."""
        self._git.change(repo, "branch", "--", branch, base)

    def delete(self, repo: str, branch: str, commit: str) -> bool:
        """Delete a branch that is still at this commit, with its settings; tell whether it was.

        The caller has seen to it that no worktree is on it.
        """
        if self._git.run(repo, ("update-ref", "-d", f"refs/heads/{branch}", commit)).status:
            return False
        # Most branches have no settings, and then there is no such section.
        self._git.run(repo, ("config", "--local", "--remove-section", f"branch.{branch}"))
        return True


def is_free(name: str, taken: Collection[str]) -> bool:
    """Tell whether a branch of this name can be made: git keeps `a` and `a/b` apart as file and folder."""
    parts = name.split("/")
    above = {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return above.isdisjoint(taken) and not any(other.startswith(f"{name}/") for other in taken)


def _bad_name(name: str) -> MamError:
    shown = repr(name if len(name) <= 60 else name[:57] + "…")
    return InvalidName(f"{shown} is not a branch name", hint="git help check-ref-format has the rules")
