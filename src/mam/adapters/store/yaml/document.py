"""The registry file as text: a head, one block for each session, and a tail.

A block that nobody changed is copied as it stands, comments included. Splitting is by lines
and therefore believed only after each part, parsed alone, gives what the whole file gave;
otherwise (flow style, anchors, other indentation) the file is rendered whole, once.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from mam.adapters.store.yaml import yaml_text
from mam.core.errors import RegistryCorrupt, SchemaTooNew

_START = "# Kept by mam"
FIRST_LINE = (
    f"{_START}. You may edit role (if unset), start_command, own conversation ids and keys of your own, "
    "and remove ended sessions. Comments stay until their session changes.\n"
)
# A file that has our first line and not this one was cut short.
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
    """What the file says: sessions, identities, keys that a person added, and whether it was cut short."""

    __slots__ = ("extra", "identities", "is_cut", "parts", "rows")

    def __init__(
        self,
        rows: list[Any],
        identities: dict[str, Any],
        extra: dict[str, Any],
        parts: Parts | None,
        is_cut: bool = False,
    ) -> None:
        self.rows = rows
        self.identities = identities
        self.extra = extra
        self.parts = parts
        self.is_cut = is_cut

    def has_list(self) -> bool:
        """Tell whether the file speaks of sessions at all; one that does not was cut short."""
        return bool(self.rows or self.parts)


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
    if not isinstance(identities, dict) or not all(_is_identity(one) for one in identities.values()):
        raise yaml_text.Unusable(
            whole.lines["agent_identities"], "agent_identities must be a mapping of mappings of texts", path
        )
    known = ("schema_version", "updated_at", "agent_identities", SESSIONS)
    extra = {key: value for key, value in whole.items() if key not in known}
    plain = text.decode("utf-8", "replace")
    return Document(rows, dict(identities), extra, _split(plain, whole, rows, path), is_cut(plain))


def is_cut(text: str) -> bool:
    """Tell whether our first line is there without our last; a program that drops comments drops both."""
    lines = text.splitlines()
    return any(line.startswith(_START) for line in lines) and LAST_LINE.rstrip() not in lines


def _is_identity(value: Any) -> bool:
    return isinstance(value, dict) and all(one is None or isinstance(one, str) for one in value.values())


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
    """Return the file with one top-level key changed and every other line kept; None if that is too hard."""
    lines = re.compile(rf"^{re.escape(key)}[ \t]*:.*\n(?:[ \t-].*\n)*", re.MULTILINE)
    fresh = yaml_text.dump_top({key: value})
    head, count = lines.subn(lambda _: fresh, parts.head, count=1)
    tail, more = (parts.tail, 1) if count else lines.subn(lambda _: fresh, parts.tail, count=1)
    changed = Parts(head if count or more else parts.head + fresh, parts.blocks, tail)
    try:
        agrees = _around(changed, "") == {**_around(parts, ""), key: value}
    except (RegistryCorrupt, TypeError):
        return None
    return changed if agrees else None


def put_time(parts: Parts, updated_at: str) -> Parts | None:
    """Return the file with only its time changed; None if that is too hard."""
    changed, count = _UPDATED.subn(f"updated_at: '{updated_at}'", parts.head, count=1)
    return Parts(changed, parts.blocks, parts.tail) if count else put_key(parts, "updated_at", updated_at)


def with_marks(parts: Parts) -> Parts:
    """Return the file with our first line at its beginning and our last one at its end."""
    head = parts.head if _START in parts.head else FIRST_LINE + parts.head.removeprefix("\ufeff")
    kept = [line for line in parts.tail.splitlines(keepends=True) if line.rstrip() != LAST_LINE.rstrip()]
    return Parts(head, parts.blocks, "".join(kept) + LAST_LINE)


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
    for number, row in enumerate(rows, 1):
        if not isinstance(row, yaml_text.Mapping):
            reason = f"a session must be a mapping, and number {number} is not"
            raise yaml_text.Unusable(whole.lines[SESSIONS], reason, path)
    return rows


def _split(text: str, whole: yaml_text.Mapping, rows: list[Any], path: str) -> Parts | None:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    at = whole.lines.get(SESSIONS)
    starts = [row.line - 1 for row in rows]
    if at is None or any(not "".join(lines[start : start + 1]).startswith("- ") for start in starts):
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
    """Return where the list ends; comments at the margin below the last session belong to what follows."""
    end = start
    while end < len(lines) and lines[end][:1] in ("-", " ", "#", "\n", "\r"):
        end += 1
    while end > start and (lines[end - 1].startswith("#") or not lines[end - 1].strip()):
        end -= 1
    return end


def _agrees(parts: Parts, whole: yaml_text.Mapping, rows: list[Any], path: str) -> bool:
    try:
        alone = [yaml_text.parse(block.encode(), path) for block in parts.blocks]
        around = _around(parts, path)
    except (RegistryCorrupt, TypeError):
        return False
    return alone == [[row] for row in rows] and {**around, SESSIONS: whole.get(SESSIONS)} == dict(whole)


def _around(parts: Parts, path: str) -> dict[str, Any]:
    """Return the keys of head and tail, each parsed alone."""
    found: dict[str, Any] = {}
    for text in (parts.head, parts.tail):
        found |= yaml_text.parse(text.encode(), path) or {}
    return found
