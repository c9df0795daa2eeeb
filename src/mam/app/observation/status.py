"""One session, whole: its row and everything that is known about it now. Reads only."""

from __future__ import annotations

from mam.app.observation.ls import describe
from mam.app.observation.transcript import usage
from mam.app.observation.versions import is_known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context


def status(context: Context, target: str) -> dict[str, Any]:
    """Return one session as `ls` shows it, looked at thoroughly."""
    return completed(context, look(context, target))


def look(context: Context, target: str) -> dict[str, Any]:
    """Look at one session thoroughly; what is told by its files alone is not in it."""
    view = context.registry.view()
    row = view.find(target)
    (found,) = describe(context, view, lambda one: one["name"] == row["name"], thorough=True)
    return found


def completed(context: Context, found: dict[str, Any]) -> dict[str, Any]:
    """Add the version of its program, and its model and tokens, to a session as it was seen."""
    row = context.registry.view().find(found["name"])
    found["agent_version"] = row["pane"].get("version")
    found["version_tested"] = is_known(context, row)
    found["usage"] = usage(context, row)
    return found
