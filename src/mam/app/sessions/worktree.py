"""A git worktree for one session: create makes it, stop keeps it, forget removes it if no work is lost.

The worktree is in `.mam-worktrees/` at the top of the main working tree. It is never inside another
worktree, because git deletes ignored files of a worktree together with it. A note in git's folder for the
worktree names the registry and the session. With it mam finds the worktree of a create that died, and leaves
those of other roots and sessions alone. A create that dies before the note has said in its intent what it is
about to make.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shlex

from mam.adapters.git.branches import is_free
from mam.adapters.git.worktree import Worktrees, no_commits
from mam.adapters.system import atomic_file, exit_watch
from mam.core.errors import DiskFull, InvalidName, InvalidPath, MamError, ReadOnly, Refused, Unavailable
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.session_row import Row

    Tree = dict[str, str]

# Where the intent of a create has the record of the worktree that it is about to make.
NEW = "new_worktree"
FOLDER = ".mam-worktrees"
_IGNORE = "# Made by mam: each folder here is a git worktree of one session.\n*\n"
_MOST_NUMBERS = 1000
_MOST_SHOWN = 3
# How long recovery waits for the git of a create that died.
_GIT_SECONDS = 5.0
_OURS = "mam"
_THEIRS = "user"


class _Site:
    """The origin of a new worktree: the repository, the commit, and the directory in it to work in."""

    def __init__(self, trees: Worktrees, workspace: str, branch: str | None) -> None:
        top = trees.toplevel(workspace)
        if top is None:
            raise InvalidPath(
                f"{workspace} is not inside a git working tree", hint="git init, or leave out --worktree"
            )
        self.trees = trees
        self.folder = os.path.relpath(os.path.realpath(workspace), os.path.realpath(top))
        self.repo = trees.main(top)
        # HEAD is that of the worktree that the caller is in, not of the main one.
        branch_start = _branch_start(trees, top, branch) if branch else None
        commit = trees.branches.commit(top, branch_start or "HEAD")
        if commit is None:
            raise no_commits(top)
        # Pass the name of a remote branch, not its commit, so that git lets the new branch track it.
        self.base = branch_start or commit
        self.commit = commit
        if self.folder != "." and not trees.has_directory(top, commit, self.folder):
            raise _no_folder(self.folder, commit)


def add_worktree(
    context: Context, row: Row, branch: str | None, announce: Callable[[Tree], None] | None = None
) -> Row:
    """Return the row with a worktree of its own as its workspace. A row that has a worktree keeps it.

    Without a branch name mam makes a new branch `mam/<session>` at the current commit. A branch that only a
    remote has starts from that remote branch. A repeated call is safe: it reuses the worktree of a create
    that died, if nobody has changed it. A failed call leaves neither a worktree nor a branch. `announce` gets
    the record of a new worktree before git makes anything.
    """
    trees = Worktrees(context.environ)
    if branch is not None:
        trees.branches.check(branch)
    if row.get("worktree"):
        return _row_with_worktree(context, trees, row, branch)
    site = _Site(trees, row["workspace"], branch)
    folder = _make_folder(site.repo)
    branch_names = trees.branches.names(site.repo)
    branches = {os.path.realpath(entry.path): entry.branch for entry in trees.entries(site.repo)}
    prefix = "mam-" if "mam" in branch_names else "mam/"
    for number in range(1, _MOST_NUMBERS):
        name = row["name"] if number == 1 else f"{row['name']}-{number}"
        path = os.path.join(folder, name)
        branch_name = branch or prefix + name
        if path in branches or os.path.lexists(path):
            unused = _unused_worktree(context, site, row, path) if branches.get(path) == branch_name else None
            if unused is not None:
                return _moved_row(row, site.folder, {"path": path, "branch": branch_name, **unused})
        elif branch or is_free(branch_name, branch_names):
            tree = {"path": path, "branch": branch_name, "repo": site.repo, "base": site.commit}
            if announce is not None:
                announce({**tree, "branch_by": _THEIRS if branch_name in branch_names else _OURS})
            return _make_worktree(context, trees, _moved_row(row, site.folder, tree), site.base)
    raise InvalidName("no name for a worktree is free", hint=f"remove old worktrees in {folder}")


def undo_worktree(context: Context, row: Row) -> None:
    """Remove the worktree of a create that failed, and its branch if mam made the branch and it is unused.

    A worktree that the session had before stays, and so does a worktree that somebody has worked in.
    """
    tree = row.get("worktree")
    if not tree or any(_path_of(other) == tree["path"] for other in context.registry.view().rows):
        return
    trees = Worktrees(context.environ)
    _refuse_work(trees, row, tree, trees.branches.tip(tree["repo"], tree["branch"]))
    _discard(trees, tree, with_branch=tree.get("branch_by") == _OURS)


def undo_announced(context: Context, row: Row, tree: Tree) -> None:
    """Remove what a create that died has made of the worktree that it announced, also without the note.

    What somebody has changed, or another session or root has signed, stays. Raises Unavailable while the git
    that the create has started still works.
    """
    path, repo, branch = tree["path"], tree["repo"], tree["branch"]
    if any(_path_of(other) == path for other in context.registry.view().rows):
        return
    trees = Worktrees(context.environ)
    if exit_watch.wait_gone(trees.workers(repo, path, branch), _GIT_SECONDS):
        raise Unavailable(
            f"git still makes the worktree {path} for a create that died",
            hint="wait for it, or end that git, and repeat",
        )
    entry = trees.entry(repo, path)
    if entry is not None and entry.branch != branch:
        return
    if os.path.lexists(path):
        if entry is None:
            return
        state = trees.state(path)
        if trees.signature(path) not in (None, *(_signature(context, row, by) for by in (_OURS, _THEIRS))):
            return
        if state.uncommitted or state.head != tree["base"]:
            raise Refused(f"somebody has worked in {path}", hint=way_to_remove(tree))
    _discard(trees, tree, with_branch=tree["branch_by"] == _OURS)


def without_session(context: Context) -> list[Tree]:
    """Return the worktrees in mam's folders that no session has and no create makes.

    Those that another root has signed are left out.
    """
    view = context.registry.view()
    trees = Worktrees(context.environ)
    records: list[Any] = [row.get("worktree") for row in view.rows]
    for intent in view.intents:
        row = intent.data.get("row")
        records += [intent.data.get(NEW), row.get("worktree") if isinstance(row, dict) else None]
    recorded = [tree for tree in records if isinstance(tree, dict)]
    used = [
        *(row.get("workspace") or "" for row in view.rows),
        *(tree.get("path") or "" for tree in recorded),
    ]
    used = [os.path.join(os.path.realpath(path), "") for path in used if path]
    around = _repo_around(context.paths.root)
    repos = {tree["repo"] for tree in recorded if tree.get("repo")} | ({around} if around else set())
    found: list[Tree] = []
    for repo in sorted(repos):
        folder = os.path.join(os.path.realpath(repo), FOLDER)
        for entry in trees.entries(repo) if os.path.isdir(folder) else ():
            path = os.path.realpath(entry.path)
            is_used = any(place.startswith(os.path.join(path, "")) for place in used)
            if (
                os.path.dirname(path) == folder
                and not is_used
                and not _is_of_another_root(context, trees, path)
            ):
                found.append({"path": path, "branch": entry.branch or "", "repo": repo})
    return found


def _repo_around(root: str) -> str | None:
    """Return the nearest folder at or above a root in which mam has made worktrees."""
    folder = os.path.realpath(root)
    while not os.path.isdir(os.path.join(folder, FOLDER)):
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return None
    return folder


def _is_of_another_root(context: Context, trees: Worktrees, path: str) -> bool:
    if not os.path.isdir(path):
        return False
    try:
        note = json.loads(trees.signature(path) or "null")
    except (MamError, ValueError, RecursionError):
        return False
    return isinstance(note, dict) and note.get("registry") != context.paths.yaml


def way_to_remove(tree: Tree) -> str:
    """Return how a worktree without a session is removed; git refuses if it holds uncommitted work."""
    remove = f"git -C {shlex.quote(tree['repo'])} worktree remove {shlex.quote(tree['path'])}"
    return f"keep it, or remove it: {remove}"


def remove_worktree(context: Context, row: Row) -> dict[str, Any]:
    """Remove the worktree of an ended session, and its branch if mam made the branch and it is merged.

    Raises Refused while the worktree holds changes or commits that are nowhere else, or while another session
    works in it. If the folder is gone, only git's registration is removed. A repeated call is safe.
    """
    tree = row.get("worktree")
    if not tree:
        raise Refused(f"'{row['name']}' has no worktree", hint="repeat without --worktree")
    path, repo, branch = tree["path"], tree["repo"], tree["branch"]
    _refuse_shared(context, row, path)
    trees = Worktrees(context.environ)
    result = {"path": path, "branch": branch, "branch_deleted": False}
    try:
        tip = trees.branches.tip(repo, branch)
        _refuse_work(trees, row, tree, tip)
        trees.remove(repo, path)
    except InvalidPath:
        if os.path.lexists(path):
            raise
        return result
    if tip and tree.get("branch_by") == _OURS and not trees.branches.unmerged(repo, tip, branch):
        result["branch_deleted"] = trees.delete_branch(repo, branch, tip)
    return result


def _branch_start(trees: Worktrees, top: str, branch: str) -> str | None:
    """Return where an existing branch starts: its local commit, or the name of its remote branch."""
    return trees.branches.tip(top, branch) or trees.branches.on_remote(top, branch)


def _row_with_worktree(context: Context, trees: Worktrees, row: Row, branch: str | None) -> Row:
    """Return a row that has a worktree. If the folder is gone, make the worktree again on its branch."""
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
    _make_folder(tree["repo"])
    commit = trees.branches.commit
    base = commit(tree["repo"], tree["base"]) or commit(tree["repo"], "HEAD") or ""
    return _make_worktree(context, trees, {**row, "worktree": {**tree, "base": base}}, base)


def _make_worktree(context: Context, trees: Worktrees, row: Row, start: str) -> Row:
    """Make the worktree of a row, on its branch or on a new branch at `start`, and write its note."""
    tree = row["worktree"] or {}
    context.progress(f"making a worktree on {tree['branch']}")
    is_new = trees.add(tree["repo"], tree["path"], tree["branch"], base=start)
    by = _OURS if is_new else tree.get("branch_by") or _THEIRS
    try:
        trees.sign(tree["path"], _signature(context, row, by))
        if not os.path.isdir(row["workspace"]):
            # The commit has the directory, but a sparse checkout may leave it out.
            raise _no_folder(os.path.relpath(row["workspace"], tree["path"]), tree["branch"])
    except BaseException:
        with contextlib.suppress(MamError):
            _discard(trees, tree, with_branch=is_new)
        raise
    return {**row, "worktree": {**tree, "branch_by": by}}


def _moved_row(row: Row, folder: str, tree: dict[str, str]) -> Row:
    return {**row, "workspace": os.path.normpath(os.path.join(tree["path"], folder)), "worktree": tree}


def _unused_worktree(context: Context, site: _Site, row: Row, path: str) -> dict[str, str] | None:
    """Return the record of a worktree that an earlier create of this name made and never used, else None."""
    if not os.path.isdir(path) or any(_path_of(other) == path for other in context.registry.view().rows):
        return None
    try:
        signature = site.trees.signature(path)
        state = site.trees.state(path)
    except MamError:
        return None
    branch_by = next(
        (maker for maker in (_OURS, _THEIRS) if signature == _signature(context, row, maker)), None
    )
    if branch_by is None or state.uncommitted or state.head != site.commit:
        return None
    return {"repo": site.repo, "base": site.commit, "branch_by": branch_by}


def _signature(context: Context, row: Row, by: str) -> str:
    """Return the note of a worktree: its registry, its session, and who made the branch."""
    return json.dumps({"registry": context.paths.yaml, "session": row["name"], "branch_by": by})


def _discard(trees: Worktrees, tree: dict[str, str], *, with_branch: bool) -> None:
    """Remove a worktree, and its branch if that has no commit of its own."""
    trees.remove(tree["repo"], tree["path"])
    if with_branch:
        trees.delete_branch(tree["repo"], tree["branch"], tree["base"])


def _refuse_work(trees: Worktrees, row: Row, tree: dict[str, str], tip: str | None) -> None:
    """Raise Refused if a worktree holds work that is nowhere else. Commits before its base do not count."""
    path, repo, branch = tree["path"], tree["repo"], tree["branch"]
    if not os.path.lexists(path):
        return
    state = trees.state(path)
    losses = []
    if state.uncommitted:
        shown = ", ".join(state.changes[:_MOST_SHOWN]) + (", …" if len(state.changes) > _MOST_SHOWN else "")
        losses.append(f"{_count(len(state.changes), 'uncommitted change')} ({shown})")
    commits = {state.branch: state.unmerged if state.head != tree["base"] else 0}
    if branch not in commits and tip and tip != tree["base"]:
        commits[branch] = trees.branches.unmerged(repo, tip, branch)
    for name, number in commits.items():
        if number:
            place = f"'{name}'" if name else "no branch"
            losses.append(f"{_count(number, 'commit')} on {place} and nowhere else")
    if losses:
        command = f"git -C {shlex.quote(repo)} worktree remove --force {shlex.quote(path)}"
        raise Refused(
            f"the worktree of '{row['name']}' holds {' and '.join(losses)}",
            hint=f"commit, and merge or push; or keep it without --worktree; or discard it: {command}",
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


def _make_folder(repo: str) -> str:
    """Make the folder for worktrees, which git ignores. Refuse a symlink, which could lead anywhere."""
    folder = os.path.join(os.path.realpath(repo), FOLDER)
    ignore = os.path.join(folder, ".gitignore")
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
        if os.path.islink(folder) or not os.path.isdir(folder):
            raise Refused(f"{folder} is not a directory of its own", hint="move it away")
        if not os.path.lexists(ignore):
            # Replace the file atomically: mam would never fill an empty file later.
            atomic_file.replace(ignore, _IGNORE.encode(), 0o666)
    except OSError as cause:
        kind = DiskFull if cause.errno in (errno.ENOSPC, errno.EDQUOT) else ReadOnly
        raise kind(f"{folder} cannot be made: {cause.strerror}") from cause
    return folder


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
