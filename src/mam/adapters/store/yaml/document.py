"""The registry file as text: a head, one block for each session, and a tail.

mam copies an unchanged block as it is, with its comments. It splits the file by lines, and uses the parts
only if each of them, parsed alone, gives the same as the complete file. Otherwise (flow style, anchors, other
indentation) mam writes the complete file again, once.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from mam.adapters.store.yaml import yaml_text
from mam.core.errors import RegistryCorrupt, SchemaTooNew

_START = "# Kept by mam"
FIRST_LINE = (
    f"{_START}. You may edit role (if unset), agent (if unknown), start_command, own conversation ids and "
    "keys of your own, and remove ended sessions. Comments stay until their session changes.\n"
)
# A file with mam's first line and without this line was truncated.
LAST_LINE = "# end of sessions\n"
SESSIONS = "tmux_sessions"
SCHEMA_VERSION = 2
_UPDATED = re.compile(r"^updated_at: '[0-9TZ:-]*'$", re.MULTILINE)


class Parts:
    """The text of the file in parts; the blocks are in the order of the sessions."""

    __slots__ = ("blocks", "head", "tail")

    def __init__(self, head: str, blocks: list[str], tail: str) -> None:
        self.head = head
        self.blocks = blocks
        self.tail = tail


class Document:
    """The content of the file: sessions, identities, keys of the user, and whether it was truncated."""

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
        """Tell whether the file has a list of sessions; a file without one was truncated."""
        return bool(self.rows or self.parts)


def read(text: bytes, path: str) -> Document | None:
    """Return the content of the file; None for an empty file, which is never an edit."""
    mapping = yaml_text.parse(text, path)
    if mapping is None:
        return None
    if not isinstance(mapping, yaml_text.Mapping):
        raise yaml_text.Unusable(1, "the file must be a mapping with the key tmux_sessions", path)
    version = mapping.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise SchemaTooNew(f"{path} was written by a newer mam (schema {version})", hint="upgrade mam")
    rows = _rows(mapping, path)
    identities = mapping.get("agent_identities") or {}
    if not isinstance(identities, dict) or not all(
        _is_identity(identity) for identity in identities.values()
    ):
        raise yaml_text.Unusable(
            mapping.lines["agent_identities"], "agent_identities must be a mapping of mappings of texts", path
        )
    own_keys = ("schema_version", "updated_at", "agent_identities", SESSIONS)
    extra = {key: value for key, value in mapping.items() if key not in own_keys}
    plain = text.decode("utf-8", "replace")
    if SESSIONS not in mapping and _has_other_content(plain, extra):
        first_line = min(mapping.lines.values(), default=1)
        raise yaml_text.Unusable(first_line, f"the key {SESSIONS} is missing", path)
    return Document(rows, dict(identities), extra, _split(plain, mapping, rows, path), is_cut(plain))


def is_cut(text: str) -> bool:
    """Tell whether mam's first line exists without the last; a program that drops comments drops both."""
    lines = text.splitlines()
    return any(line.startswith(_START) for line in lines) and LAST_LINE.rstrip() not in lines


def _has_other_content(text: str, extra: dict[str, Any]) -> bool:
    """Tell whether a file without sessions is an edit: it ends as mam ends it, or has another list."""
    return LAST_LINE.rstrip() in text.splitlines() or any(
        isinstance(value, list) and any(isinstance(item, dict) for item in value) for value in extra.values()
    )


def _is_identity(value: Any) -> bool:
    return isinstance(value, dict) and all(
        field is None or isinstance(field, str) for field in value.values()
    )


def render_head(updated_at: str, identities: dict[str, Any], extra: dict[str, Any]) -> str:
    """Return the text above the sessions."""
    top = {
        "schema_version": SCHEMA_VERSION,
        "updated_at": updated_at,
        "agent_identities": identities,
        **extra,
    }
    return FIRST_LINE + yaml_text.dump_top(top)


def put_key(parts: Parts, key: str, value: Any) -> Parts | None:
    """Return the file with one top-level key changed and all other lines kept; None if that is impossible."""
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
    """Return the file with only its time changed; None if that is impossible."""
    changed, count = _UPDATED.subn(f"updated_at: '{updated_at}'", parts.head, count=1)
    return Parts(changed, parts.blocks, parts.tail) if count else put_key(parts, "updated_at", updated_at)


def with_marks(parts: Parts) -> Parts:
    """Return the file with mam's first line at its beginning and the last line at its end."""
    head = parts.head if _START in parts.head else FIRST_LINE + parts.head.removeprefix("\ufeff")
    lines = [line for line in parts.tail.splitlines(keepends=True) if line.rstrip() != LAST_LINE.rstrip()]
    return Parts(head, parts.blocks, "".join(lines) + LAST_LINE)


def join(parts: Parts) -> bytes:
    """Return the complete file."""
    listing = f"{SESSIONS}:\n" + "".join(parts.blocks) if parts.blocks else f"{SESSIONS}: []\n"
    return (parts.head + listing + parts.tail).encode()


def _rows(mapping: yaml_text.Mapping, path: str) -> list[Any]:
    rows = mapping.get(SESSIONS)
    if rows is None:
        return []
    if not isinstance(rows, list):
        raise yaml_text.Unusable(mapping.lines[SESSIONS], f"{SESSIONS} must be a list", path)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, yaml_text.Mapping):
            reason = f"a session must be a mapping, and number {number} is not"
            raise yaml_text.Unusable(mapping.lines[SESSIONS], reason, path)
    return rows


def _split(text: str, mapping: yaml_text.Mapping, rows: list[Any], path: str) -> Parts | None:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    at = mapping.lines.get(SESSIONS)
    starts = [row.line - 1 for row in rows]
    if at is None or any(not "".join(lines[start : start + 1]).startswith("- ") for start in starts):
        return None
    starts = [_with_comment_above(lines, start, at) for start in starts]
    first = starts[0] if starts else at
    between = "".join(lines[at:first])
    end = _end_of_list(lines, rows[-1].line if rows else at)
    bounds = [*starts, end]
    blocks = ["".join(lines[start:stop]) for start, stop in pairwise(bounds)]
    head = "".join(lines[: at - 1])
    if blocks and between.strip():
        blocks[0] = between + blocks[0]
    parts = Parts(head, blocks, "".join(lines[end:]))
    return parts if _agrees(parts, mapping, rows, path) else None


def _with_comment_above(lines: list[str], start: int, lowest: int) -> int:
    while start > lowest and lines[start - 1].startswith("#"):
        start -= 1
    return start


def _end_of_list(lines: list[str], start: int) -> int:
    """Return where the list ends; unindented comments below the last session belong to the next key."""
    end = start
    while end < len(lines) and lines[end][:1] in ("-", " ", "#", "\n", "\r"):
        end += 1
    while end > start and (lines[end - 1].startswith("#") or not lines[end - 1].strip()):
        end -= 1
    return end


def _agrees(parts: Parts, mapping: yaml_text.Mapping, rows: list[Any], path: str) -> bool:
    try:
        alone = [yaml_text.parse(block.encode(), path) for block in parts.blocks]
        around = _around(parts, path)
    except (RegistryCorrupt, TypeError):
        return False
    return alone == [[row] for row in rows] and {**around, SESSIONS: mapping.get(SESSIONS)} == dict(mapping)


def _around(parts: Parts, path: str) -> dict[str, Any]:
    """Return the keys of head and tail, each parsed alone."""
    keys: dict[str, Any] = {}
    for text in (parts.head, parts.tail):
        keys |= yaml_text.parse(text.encode(), path) or {}
    return keys
