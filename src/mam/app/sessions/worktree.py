"""A git worktree of a session's own: made by create, kept by stop, removed by forget if nothing is lost.

It lies in `.mam-worktrees/` at the top of the main working tree, never inside another worktree: git
deletes what is ignored there together with it. A note beside each worktree says whose it is, so one
that was made by a create that died is found again, and one that a session of another root or name
has is left alone.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex

from mam.adapters.git.branches import is_free
from mam.adapters.git.worktree import Worktrees, no_commits
from mam.adapters.system import atomic_file
from mam.core.errors import DiskFull, InvalidName, InvalidPath, MamError, ReadOnly, Refused
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.session_row import Row

FOLDER = ".mam-worktrees"
_IGNORE = "# Made by mam: each folder here is a git worktree of one session.\n*\n"
_MOST_NUMBERS = 1000
_MOST_SHOWN = 3
_OURS = "mam"
_THEIRS = "user"


class _Site:
    """Where a new worktree comes from: repository, commit, and the directory in it to work in."""

    def __init__(self, trees: Worktrees, workspace: str, branch: str | None) -> None:
        top = trees.toplevel(workspace)
        if top is None:
            raise InvalidPath(
                f"{workspace} is not inside a git working tree", hint="git init, or leave out --worktree"
            )
        self.trees = trees
        self.folder = os.path.relpath(os.path.realpath(workspace), os.path.realpath(top))
        self.repo = trees.main(top)
        # What HEAD means is said by the worktree that the caller is in, not by the main one.
        known = _known(trees, top, branch) if branch else None
        commit = trees.branches.commit(top, known or "HEAD")
        if commit is None:
            raise no_commits(top)
        # A remote's branch is named as it is, so that git has the new one track it.
        self.base = known or commit
        self.commit = commit
        if self.folder != "." and not trees.has_directory(top, commit, self.folder):
            raise _no_folder(self.folder, commit)


def add_worktree(context: Context, row: Row, branch: str | None) -> Row:
    """Return the row with a worktree of its own as its workspace; a row that has one keeps it.

    Without a branch name a new branch `mam/<session>` is made at the commit that is checked out now. A name
    that only a remote has starts from there. Repeats safely: what a create that died left behind is taken
    if it is untouched. What fails leaves neither a worktree nor a branch.
    """
    trees = Worktrees(context.environ)
    if branch is not None:
        trees.branches.check(branch)
    if row.get("worktree"):
        return _kept(context, trees, row, branch)
    site = _Site(trees, row["workspace"], branch)
    home = _make_home(site.repo)
    names = trees.branches.names(site.repo)
    known = {os.path.realpath(entry.path): entry.branch for entry in trees.entries(site.repo)}
    prefix = "mam-" if "mam" in names else "mam/"
    for number in range(1, _MOST_NUMBERS):
        name = row["name"] if number == 1 else f"{row['name']}-{number}"
        path = os.path.join(home, name)
        wanted = branch or prefix + name
        if path in known or os.path.lexists(path):
            left = _left_behind(context, site, row, path) if known.get(path) == wanted else None
            if left is not None:
                return _moved(row, site.folder, {"path": path, "branch": wanted, **left})
        elif branch or is_free(wanted, names):
            tree = {"path": path, "branch": wanted, "repo": site.repo, "base": site.commit}
            return _make(context, trees, _moved(row, site.folder, tree), site.base)
    raise InvalidName("no free name for a worktree is left", hint=f"look into {home}")


def take_back(context: Context, row: Row) -> None:
    """Undo the worktree of a create that failed: it goes, and so does a branch that was made and not used.

    A worktree that the session had before stays, and so does one that somebody has worked in.
    """
    tree = row.get("worktree")
    if not tree or any(_path_of(other) == tree["path"] for other in context.registry.view().rows):
        return
    trees = Worktrees(context.environ)
    _refuse_work(trees, row, tree, trees.branches.tip(tree["repo"], tree["branch"]))
    _discard(trees, tree, with_branch=tree.get("branch_by") == _OURS)


def remove_worktree(context: Context, row: Row) -> dict[str, Any]:
    """Remove an ended session's worktree, and its branch if that was made for it and is merged.

    Raises Refused while it holds changes or commits that are nowhere else, or while another session
    works in it. Where the folder is gone already only git's registration is removed; repeats safely.
    """
    tree = row.get("worktree")
    if not tree:
        raise Refused(f"'{row['name']}' has no worktree", hint="repeat without --worktree")
    path, repo, branch = tree["path"], tree["repo"], tree["branch"]
    _refuse_shared(context, row, path)
    trees = Worktrees(context.environ)
    done = {"path": path, "branch": branch, "branch_deleted": False}
    try:
        tip = trees.branches.tip(repo, branch)
        _refuse_work(trees, row, tree, tip)
        trees.remove(repo, path)
    except InvalidPath:
        if os.path.lexists(path):
            raise
        return done
    if tip and tree.get("branch_by") == _OURS and not trees.branches.unmerged(repo, tip, branch):
        done["branch_deleted"] = trees.delete_branch(repo, branch, tip)
    return done


def _known(trees: Worktrees, top: str, branch: str) -> str | None:
    """Return where a branch that exists is: here, or on a remote."""
    return trees.branches.tip(top, branch) or trees.branches.on_remote(top, branch)


def _kept(context: Context, trees: Worktrees, row: Row, branch: str | None) -> Row:
    """Return a row that has a worktree; one whose folder is gone is made again on its branch."""
    tree = row["worktree"] or {}
    if branch not in (None, tree["branch"]):
        raise Refused(
            f"'{row['name']}' has a worktree on the branch '{tree['branch']}'",
            hint=f"leave out the branch, or mam forget --worktree {row['name']} first",
        )
    if os.path.isdir(tree["path"]):
        return row
    if not os.path.lexists(tree["path"]):
        trees.remove(tree["repo"], tree["path"])
    _make_home(tree["repo"])
    commit = trees.branches.commit
    base = commit(tree["repo"], tree["base"]) or commit(tree["repo"], "HEAD") or ""
    return _make(context, trees, {**row, "worktree": {**tree, "base": base}}, base)


def _make(context: Context, trees: Worktrees, row: Row, start: str) -> Row:
    """Make the worktree that the row speaks of, on its branch or a new one at start, and sign it."""
    tree = row["worktree"] or {}
    context.progress(f"making a worktree on {tree['branch']}")
    added = trees.add(tree["repo"], tree["path"], tree["branch"], base=start)
    by = _OURS if added.branch_made else tree.get("branch_by") or _THEIRS
    try:
        trees.sign(tree["path"], _signature(context, row, by))
        if not os.path.isdir(row["workspace"]):
            # A sparse checkout leaves out what the commit has.
            raise _no_folder(os.path.relpath(row["workspace"], tree["path"]), tree["branch"])
    except BaseException:
        with contextlib.suppress(MamError):
            _discard(trees, tree, with_branch=added.branch_made)
        raise
    if added.hook_failure:
        context.progress(f"the repository's post-checkout hook failed, {added.hook_failure}")
    return {**row, "worktree": {**tree, "branch_by": by}}


def _moved(row: Row, folder: str, tree: dict[str, str]) -> Row:
    return {**row, "workspace": os.path.normpath(os.path.join(tree["path"], folder)), "worktree": tree}


def _left_behind(context: Context, site: _Site, row: Row, path: str) -> dict[str, str] | None:
    """Return the rest of the record of a worktree that an earlier create of this name made and never used."""
    if not os.path.isdir(path) or any(_path_of(other) == path for other in context.registry.view().rows):
        return None
    try:
        signature = site.trees.signature(path)
        state = site.trees.state(path)
    except MamError:
        return None
    by = next((one for one in (_OURS, _THEIRS) if signature == _signature(context, row, one)), None)
    if by is None or state.uncommitted or state.head != site.commit:
        return None
    return {"repo": site.repo, "base": site.commit, "branch_by": by}


def _signature(context: Context, row: Row, by: str) -> str:
    """Return the note that says whose a worktree is: registry, session, and who made the branch."""
    return json.dumps({"registry": context.paths.yaml, "session": row["name"], "branch_by": by})


def _discard(trees: Worktrees, tree: dict[str, str], *, with_branch: bool) -> None:
    """Remove a worktree, and its branch if that has no commit of its own."""
    trees.remove(tree["repo"], tree["path"])
    if with_branch:
        trees.delete_branch(tree["repo"], tree["branch"], tree["base"])


def _refuse_work(trees: Worktrees, row: Row, tree: dict[str, str], tip: str | None) -> None:
    """Raise Refused if a worktree holds what is nowhere else; commits that it began with are not its own."""
    path, repo, branch = tree["path"], tree["repo"], tree["branch"]
    if not os.path.lexists(path):
        return
    state = trees.state(path)
    found = []
    if state.uncommitted:
        shown = ", ".join(state.changes[:_MOST_SHOWN]) + (", …" if len(state.changes) > _MOST_SHOWN else "")
        found.append(f"{_count(len(state.changes), 'uncommitted change')} ({shown})")
    own = {state.branch: state.unmerged if state.head != tree["base"] else 0}
    if branch not in own and tip and tip != tree["base"]:
        own[branch] = trees.branches.unmerged(repo, tip, branch)
    for name, number in own.items():
        if number:
            where = f"'{name}'" if name else "no branch"
            found.append(f"{_count(number, 'commit')} on {where} and nowhere else")
    if found:
        words = f"git -C {shlex.quote(repo)} worktree remove --force {shlex.quote(path)}"
        raise Refused(
            f"the worktree of '{row['name']}' holds {' and '.join(found)}",
            hint=f"commit, and merge or push; leave out --worktree to keep it; or throw it away: {words}",
        )


def _refuse_shared(context: Context, row: Row, path: str) -> None:
    for other in context.registry.view().rows:
        workspace = os.path.join(other.get("workspace") or "", "")
        uses = is_running(other) or other.get("resumable")
        if other.get("id") != row["id"] and uses and workspace.startswith(os.path.join(path, "")):
            raise Refused(
                f"the session '{other['name']}' works in this worktree too",
                hint=f"mam stop {other['name']} and mam forget {other['name']} first",
            )


def _make_home(repo: str) -> str:
    """Make the folder of our worktrees, which git ignores; a link in its place could lead anywhere."""
    home = os.path.join(os.path.realpath(repo), FOLDER)
    ignore = os.path.join(home, ".gitignore")
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(home)
        if os.path.islink(home) or not os.path.isdir(home):
            raise Refused(f"{home} is not a directory of its own", hint="move it away")
        if not os.path.lexists(ignore):
            # Whole or not at all: an empty file would never be filled.
            atomic_file.replace(ignore, _IGNORE.encode(), 0o666)
    except OSError as cause:
        kind = DiskFull if cause.errno in (errno.ENOSPC, errno.EDQUOT) else ReadOnly
        raise kind(f"{home} cannot be made: {cause.strerror}") from cause
    return home


def _path_of(row: Row) -> str | None:
    tree: Any = row.get("worktree")
    return tree.get("path") if isinstance(tree, dict) else None


def _no_folder(folder: str, where: str) -> Refused:
    return Refused(
        f"a worktree of {where[:40]} has no directory '{folder}'",
        hint="commit the directory, or create the session at the top of the repository",
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
