"""Branches of a repository: names, commits, unmerged commits, creating and deleting a branch.

mam deletes a branch only if it is still at the commit that the caller saw. A newer commit keeps the branch.
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
        """Store the git program to run."""
        self._git = git

    def check(self, name: str) -> str:
        """Return the name if a branch may have it; otherwise raise InvalidName, so that git never gets it."""
        # git accepts `@` as a branch name, but every command that takes a branch reads it as HEAD.
        if name.startswith("-") or name == "@" or not name.isprintable():
            raise _bad_name(name)
        answer = self._git.run("/", ("check-ref-format", "--branch", name))
        # For `@{-1}` git prints the name of another branch.
        if answer.status or answer.line != name:
            raise _bad_name(name)
        return name

    def names(self, repo: str) -> frozenset[str]:
        """Return every local branch."""
        answer = self._git.ask(repo, "for-each-ref", "--format=%(refname)", "refs/heads")
        return frozenset(parse.branch_of(ref) for ref in parse.lines(answer.out))

    def commit(self, repo: str, revision: str) -> str | None:
        """Return the full id of the commit of a revision, or None if there is no such commit."""
        answer = self._git.ask(
            repo, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", accept=(0, 1)
        )
        return answer.line if answer.status == 0 else None

    def tip(self, repo: str, branch: str) -> str | None:
        """Return the commit of a local branch, or None if there is no such branch."""
        return self.commit(repo, f"refs/heads/{branch}")

    def on_remote(self, repo: str, branch: str) -> str | None:
        """Return the full name of this remote branch, or None; refuse if several remotes have it."""
        answer = self._git.ask(repo, "for-each-ref", "--format=%(refname)", f"refs/remotes/*/{branch}")
        refs = parse.lines(answer.out)
        if len(refs) > 1:
            raise Refused(
                f"more than one remote has a branch '{branch}'",
                hint=f"git branch {branch} REMOTE/{branch} first",
            )
        return refs[0] if refs else None

    def unmerged(self, repo: str, commit: str, branch: str | None) -> int:
        """Return how many commits up to this one are on no local or remote branch except `branch`."""
        exclude = [f"--exclude={branch}"] if branch else []
        answer = self._git.ask(
            repo, "rev-list", "--count", commit, "--not", *exclude, "--branches", "--remotes"
        )
        return int(answer.line)

    def create(self, repo: str, branch: str, base: str) -> None:
        """Create a branch; refuse one that exists. If its base is a remote branch, it tracks that."""
        self._git.change(repo, "branch", "--", branch, base)

    def delete(self, repo: str, branch: str, commit: str) -> bool:
        """Delete a branch with its settings if it is still at this commit; tell whether it was deleted.

        The caller has made sure that no worktree has the branch checked out.
        """
        if self._git.run(repo, ("update-ref", "-d", f"refs/heads/{branch}", commit)).status:
            return False
        # This fails for most branches, because they have no settings.
        self._git.run(repo, ("config", "--local", "--remove-section", f"branch.{branch}"))
        return True


def is_free(name: str, existing: Collection[str]) -> bool:
    """Tell whether a branch of this name can be created; git cannot have both `a` and `a/b`."""
    parts = name.split("/")
    above = {"/".join(parts[:length]) for length in range(1, len(parts) + 1)}
    return above.isdisjoint(existing) and not any(other.startswith(f"{name}/") for other in existing)


def _bad_name(name: str) -> MamError:
    shown = repr(name if len(name) <= 60 else name[:57] + "…")
    return InvalidName(f"{shown} is not a branch name", hint="git help check-ref-format has the rules")
