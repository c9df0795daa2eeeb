"""Returns the branch of a directory and the number of its changed files, in a short time or not at all.

Measured with git 2.39: 4 ms in a small repository and 30 ms in one of 20,000 files, half of it to start git
twice or to compare times; 90 ms beside 50,000 files that are untracked and not ignored.
"""

from __future__ import annotations

from typing import NamedTuple

from mam.adapters.git import parse
from mam.adapters.git.head import IN_TABLES, head
from mam.core.errors import MamError, TimedOut
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_FILES = 1000
# 1,000 files with paths of some 900 bytes.
_MOST_BYTES = 1 << 20
_LONGEST_BRANCH = 250
_COMMIT_DIGITS = 7


class Summary(NamedTuple):
    """The state of a work tree in short, safe for one line of a terminal.

    `branch` is the short id of the commit if HEAD is detached. `changed_files` is None if git was too slow.
    With `changed_more` there are more than that.
    """

    branch: str
    detached: bool
    changed_files: int | None
    changed_more: bool


def summary(
    directory: str,
    environ: Mapping[str, str] | None = None,
    *,
    seconds: float,
    cancel: int | None = None,
) -> Summary | None:
    """Return the summary of the work tree that holds a directory; None without one, or if git fails.

    `directory` has no symbolic links. Files count in the whole work tree: changed, staged, in conflict or
    untracked, without ignored ones, up to 1,000. git is not started where no work tree is seen. It gets at
    most so many seconds, and ends when the descriptor `cancel` can be read. It writes nothing, also not the
    index.
    """
    found = head(directory)
    if found is None:
        return None
    # Imported here: it is slow to import, and many directories are in no work tree.
    from mam.adapters.git.run_git import Program

    try:
        answer, is_cut = Program(environ).read(
            directory, *parse.status_arguments("all"), seconds=seconds, most=_MOST_BYTES, cancel=cancel
        )
    except TimedOut:
        if found.branch == IN_TABLES:
            return None
        return _summary(found.branch, found.commit, None, has_more=False)
    except (MamError, OSError):
        return None
    # The last entry may be cut.
    status = parse.status(answer[: answer.rfind(b"\0") + 1])
    count = len(status.changes)
    return _summary(status.branch, status.head, min(count, MOST_FILES), has_more=is_cut or count > MOST_FILES)


def _summary(branch: str | None, commit: str | None, count: int | None, *, has_more: bool) -> Summary:
    name = (commit or "")[:_COMMIT_DIGITS] if branch is None else one_line(branch, _LONGEST_BRANCH)
    return Summary(name, branch is None, count, has_more)
