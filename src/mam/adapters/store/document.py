"""The registry file as text: a head, one block for each session, and a tail.

A block that nobody changed is copied as it stands, comments included. Splitting is by lines
and therefore believed only after each part, parsed alone, gives what the whole file gave;
otherwise (flow style, anchors, other indentation) the file is rendered whole, once.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from mam.adapters.store import yaml_text
from mam.core.errors import RegistryCorrupt, SchemaTooNew

FIRST_LINE = (
    "# Kept by mam, safe to edit: `mam log` shows what was taken in. "
    "Comments stay as long as the session they stand in does not change.\n"
)
LAST_LINE = "# end of sessions\n"
SESSIONS = "tmux_sessions"
SCHEMA_VERSION = 2
_UPDATED = re.compile(r"^updated_at: '[0-9TZ:-]*'$", re.MULTILINE)


class Parts:
    """The text of the file in pieces; blocks are in the order of the sessions."""

    __slots__ = ("blocks", "head", "tail")

    def __init__(self, head: str, blocks: list[str], tail: str) -> None:
        self.head = head
        self.blocks = blocks
        self.tail = tail


class Document:
    """What the file says: sessions, identities, and keys that a person added; `is_whole`: its end is there."""

    __slots__ = ("extra", "identities", "is_whole", "parts", "rows")

    def __init__(
        self,
        rows: list[Any],
        identities: dict[str, Any],
        extra: dict[str, Any],
        parts: Parts | None,
        is_whole: bool = False,
    ) -> None:
        self.rows = rows
        self.identities = identities
        self.extra = extra
        self.parts = parts
        self.is_whole = is_whole


def read(text: bytes, path: str) -> Document | None:
    """Return what the file says; None for a file without content, which is never an edit."""
    whole = yaml_text.parse(text, path)
    if whole is None:
        return None
    if not isinstance(whole, yaml_text.Mapping):
        raise yaml_text.Unusable(1, "the file must be a mapping with the key tmux_sessions", path)
    version = whole.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise SchemaTooNew(f"{path} was written by a newer mam (schema {version})", hint="upgrade mam")
    rows = _rows(whole, path)
    identities = whole.get("agent_identities") or {}
    if not isinstance(identities, dict):
        raise yaml_text.Unusable(whole.lines["agent_identities"], "agent_identities must be a mapping", path)
    known = ("schema_version", "updated_at", "agent_identities", SESSIONS)
    extra = {key: value for key, value in whole.items() if key not in known}
    plain = text.decode("utf-8", "replace")
    return Document(rows, dict(identities), extra, _split(plain, whole, rows, path), has_end(plain))


def has_end(text: str) -> bool:
    """Tell whether our last line is there, whole; an editor may have dropped its line break."""
    return any(line == LAST_LINE.rstrip() for line in text.splitlines())


def render_head(updated_at: str, identities: dict[str, Any], extra: dict[str, Any]) -> str:
    """Return everything above the sessions."""
    top = {
        "schema_version": SCHEMA_VERSION,
        "updated_at": updated_at,
        "agent_identities": identities,
        **extra,
    }
    return FIRST_LINE + yaml_text.dump_top(top)


def put_key(parts: Parts, key: str, value: Any) -> Parts | None:
    """Return the file with one top-level key changed and every other line as it is; None if that is too hard."""
    lines = re.compile(rf"^{re.escape(key)}[ \t]*:.*\n(?:[ \t-].*\n)*", re.MULTILINE)
    fresh = yaml_text.dump_top({key: value})
    for name, text in (("head", parts.head), ("tail", parts.tail)):
        changed, count = lines.subn(lambda _: fresh, text, count=1)
        if count:
            head, tail = (changed, parts.tail) if name == "head" else (parts.head, changed)
            break
    else:
        head, tail, text, changed = parts.head + fresh, parts.tail, parts.head, parts.head + fresh
    try:
        agrees = yaml_text.parse(changed.encode(), "") == {**(yaml_text.parse(text.encode(), "") or {}), key: value}
    except RegistryCorrupt:
        return None
    return Parts(head, parts.blocks, tail) if agrees else None


def put_time(parts: Parts, updated_at: str) -> Parts | None:
    """Return the file with only its time changed; None if that is too hard."""
    changed, count = _UPDATED.subn(f"updated_at: '{updated_at}'", parts.head, count=1)
    return Parts(changed, parts.blocks, parts.tail) if count else put_key(parts, "updated_at", updated_at)


def with_end(tail: str) -> str:
    """Return the tail with our last line at its end."""
    kept = [line for line in tail.splitlines(keepends=True) if line.rstrip("\r\n") != LAST_LINE.rstrip()]
    return "".join(kept) + LAST_LINE


def join(parts: Parts) -> bytes:
    """Return the whole file."""
    listing = f"{SESSIONS}:\n" + "".join(parts.blocks) if parts.blocks else f"{SESSIONS}: []\n"
    return (parts.head + listing + parts.tail).encode()


def _rows(whole: yaml_text.Mapping, path: str) -> list[Any]:
    rows = whole.get(SESSIONS)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise yaml_text.Unusable(whole.lines[SESSIONS], f"{SESSIONS} must be a list", path)
    return rows


def _split(text: str, whole: yaml_text.Mapping, rows: list[Any], path: str) -> Parts | None:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    at = whole.lines.get(SESSIONS)
    if at is None or any(not isinstance(row, yaml_text.Mapping) for row in rows):
        return None
    starts = [row.line - 1 for row in rows]
    if any(not lines[start].startswith("- ") for start in starts):
        return None
    starts = [_with_comment_above(lines, start, at) for start in starts]
    first = starts[0] if starts else at
    between = "".join(lines[at:first])
    end = _end_of_list(lines, rows[-1].line if rows else at)
    bounds = [*starts, end]
    blocks = ["".join(lines[one:two]) for one, two in pairwise(bounds)]
    head = "".join(lines[: at - 1])
    if blocks and between.strip():
        blocks[0] = between + blocks[0]
    parts = Parts(head, blocks, "".join(lines[end:]))
    return parts if _agrees(parts, whole, rows, path) else None


def _with_comment_above(lines: list[str], start: int, lowest: int) -> int:
    while start > lowest and lines[start - 1].startswith("#"):
        start -= 1
    return start


def _end_of_list(lines: list[str], start: int) -> int:
    for number in range(start, len(lines)):
        if lines[number][:1] not in ("-", " ", "#", "\n", "\r") or has_end(lines[number]):
            return number
    return len(lines)


def _agrees(parts: Parts, whole: yaml_text.Mapping, rows: list[Any], path: str) -> bool:
    try:
        alone = [yaml_text.parse(block.encode(), path) for block in parts.blocks]
        around: dict[str, Any] = {}
        for text in (parts.head, parts.tail):
            around |= yaml_text.parse(text.encode(), path) or {}
    except (RegistryCorrupt, TypeError):
        return False
    return alone == [[row] for row in rows] and {**around, SESSIONS: whole.get(SESSIONS)} == dict(whole)
