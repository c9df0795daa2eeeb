"""A listing for a person, as `ls`, `ls --watch` and `status` print it."""

from __future__ import annotations

from mam.surfaces.cli.render_sessions import clean, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.surfaces.cli.style import Paint


def show(
    document: dict[str, Any], paint: Paint, *, is_filtered: bool = False, here: str | None = None
) -> list[str]:
    """Return a listing for a person: a table, or one for each root where there are several.

    On a terminal it names the root where that is another directory than `here`.
    """
    sessions = document["sessions"]
    failed = [f"{clean(one['root'])}: {clean(one['error'])}" for one in document.get("unreadable") or []]
    lines = [paint(text, "red") for text in failed]
    if not sessions:
        if is_filtered:
            return [*lines, "no session fits"]
        hint = paint("  mam create --agent claude starts one; mam demo shows how it works", "dim")
        return [*lines, f"no sessions in {clean(document['root'])}", hint]
    if "unreadable" not in document:
        is_far = paint.width is not None and here not in (None, document["root"])
        below = [paint(f"of the root {clean(document['root'])}", "dim")] if is_far else []
        return [*table(sessions, paint), *below]
    for root in dict.fromkeys(one["root"] for one in sessions):
        lines += [*([""] if lines else []), paint(clean(root), "bold")]
        lines += table([one for one in sessions if one["root"] == root], paint)
    return lines
