"""The verb `status`: one session with its row and everything that mam knows about it now. Reads only."""

from __future__ import annotations

from mam.app.observation.ls import describe
from mam.app.observation.transcript import usage_and_last_words
from mam.app.observation.versions import runs_tested_version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.session_row import Row


def status(context: Context, target: str) -> dict[str, Any]:
    """Return one session as `ls` lists it, from a thorough look, with details."""
    return add_details(context, look(context, target))


def look(context: Context, target: str) -> dict[str, Any]:
    """Return one session as `ls` lists it, from a thorough look."""
    view = context.view_to_show()
    target_row = view.find(target)
    (entry,) = describe(context, view, lambda row: row["name"] == target_row["name"], thorough=True)
    return entry


def add_details(context: Context, entry: dict[str, Any]) -> dict[str, Any]:
    """Add the program's version, the usage, the last words and the git branch to a session as listed."""
    row: Row = entry  # type: ignore[assignment]  # it has every field of the row
    entry["agent_version"] = row["pane"].get("version")
    is_ours = context.may_look
    entry["version_tested"] = runs_tested_version(context, row) if is_ours else None
    (facts,) = usage_and_last_words(context, [row]) if is_ours else [{"usage": None, "last_words": None}]
    entry.update(facts)
    entry["git"] = _git(context, row) if is_ours else None
    return entry


def _git(context: Context, row: Row) -> dict[str, Any] | None:
    """Return the branch and the number of changed files of the session's worktree, or of its workspace."""
    # Imported here: threads and temporary files are slow to import, and not every root is ours.
    from mam.app.observation.git_summaries import GitSummaries

    directory = (row.get("worktree") or {}).get("path") or row["workspace"]
    found = GitSummaries(context.environ).refresh_now([directory])[directory]
    return found._asdict() if found is not None else None
