"""Lines about a state that was built anew, by `mam init` or `mam restore`: what was not taken over."""

from __future__ import annotations

from mam.surfaces.cli.render_sessions import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Document = dict[str, Any]

MOST_LISTED = 10


def left_behind(document: Document) -> list[str]:
    """Return what was dropped on purpose, what was left out, and which files stay in the former state."""
    dropped, lines = document["dropped"], []
    parts = [counted(dropped["intents"], "unfinished change")] if dropped["intents"] else []
    parts += [f"{counted(dropped['events'], 'event')} not yet published"] if dropped["events"] else []
    if parts:
        lines.append(f"dropped: {', '.join(parts)}")
    for row in document["left_out"][:MOST_LISTED]:
        lines.append(f"left out: {clean(row['table'])} {clean(row['key'])}: {clean(row['reason'], 200)}")
    if document["left_out_count"] > MOST_LISTED:
        lines.append(f"left out: {document['left_out_count'] - MOST_LISTED} more (--json lists them)")
    if document["files_left"]:
        lines.append(f"files left in the former state: {listed(document['files_left'])}")
    return lines


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 session`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def brought(taken: dict[str, int]) -> str:
    """Return how many sessions, messages, jobs and tasks a new state has."""
    nouns = ("session", "message", "job", "task")
    counts = [counted(taken[f"{noun}s"], noun) for noun in nouns if taken.get(f"{noun}s")]
    return ", ".join(counts) or "nothing"


def listed(words: list[str]) -> str:
    """Return the first words of a list, and how many more there are."""
    shown = ", ".join(clean(word) for word in words[:MOST_LISTED])
    return shown if len(words) <= MOST_LISTED else f"{shown} and {len(words) - MOST_LISTED} more"
