"""The listing of sessions for people, as `ls`, `ls --watch` and `status` print it."""

from __future__ import annotations

from mam.core.root_state import RootState
from mam.surfaces.cli.render_sessions import clean, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.style import Paint


def show(
    document: dict[str, Any], paint: Paint, *, is_filtered: bool = False, workspace: str | None = None
) -> list[str]:
    """Return the lines of a listing: one table, or one for each root if the listing covers several.

    On a terminal, a line names the root if the root is not the directory `workspace`.
    """
    sessions = document["sessions"]
    lines = _unreadable(document, paint)
    if not sessions:
        if is_filtered:
            return [*lines, "no session matches"]
        lines.append(f"no sessions in {clean(document['root'])}")
        # In every other state mam refuses to create one, and the warning says what helps.
        if document["root_state"] in (RootState.NEW, RootState.KNOWN):
            lines.append(paint("  mam create --agent claude starts one; mam demo shows how it works", "dim"))
        return lines
    if "unreadable" not in document:
        is_far = paint.width is not None and workspace not in (None, document["root"])
        below = [paint(f"root: {clean(document['root'])}", "dim")] if is_far else []
        return [*table(sessions, paint), *below, *_resident(document.get("resident"), paint)]
    for root in dict.fromkeys(session["root"] for session in sessions):
        lines += [*([""] if lines else []), paint(clean(root), "bold")]
        lines += table([session for session in sessions if session["root"] == root], paint)
    return lines


def _unreadable(document: dict[str, Any], paint: Paint) -> list[str]:
    """Return the lines about roots that cannot be shown, without the one of which a warning tells already."""
    lines: list[str] = []
    for root in document.get("unreadable") or []:
        if (root["root"], root.get("root_state")) == (document["root"], RootState.MISSING):
            continue
        lines.append(paint(f"{clean(root['root'])}: {clean(root['error'], 4096)}", "red"))
        if root.get("hint"):
            lines.append(f"  {paint(clean(root['hint'], 4096), 'dim')}")
    return lines


def _resident(resident: dict[str, Any] | None, paint: Paint) -> list[str]:
    """Return a line if the resident hangs, or if none runs that is needed and none is just being started."""
    if resident is not None and resident["state"] == "hung":
        return [paint(f"the resident hangs: {clean(resident['reason'], 300)}", "yellow")]
    if resident is None or resident["state"] != "down" or resident["reason"] is None:
        return []
    again = f", not before {resident['next_start_at']}" if resident["next_start_at"] else ""
    text = f"no resident runs: {clean(resident['reason'], 300)}; the next change starts one{again}"
    return [paint(f"{text}; mam doctor says more", "yellow")]
