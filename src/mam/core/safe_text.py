"""Untrusted text made safe for where it goes.

Panes, agents, files and people's file names all carry bytes that a terminal, a paste or a log
line would obey. Each destination has its own function; nothing else strips characters.
"""

from __future__ import annotations

_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_C0 = {code: None for code in range(0x20)}
_C1 = {code: None for code in range(0x7F, 0xA0)}
_LINE_BREAKS = {0x0A: " ", 0x0D: " ", 0x09: " ", 0x0B: " ", 0x0C: " ", 0x85: " ", 0x2028: " ", 0x2029: " "}

_FOR_LINE = {**_C0, **_C1, **dict.fromkeys(map(ord, _BIDI)), **_LINE_BREAKS}
_FOR_PASTE = {code: None for code in (*_C0, *_C1) if code not in (0x09, 0x0A)}
_FOR_SCREEN = {**{code: None for code in (*_C0, *_C1) if code != 0x0A}, **dict.fromkeys(map(ord, _BIDI))}


def one_line(text: str, limit: int = 2000) -> str:
    """Return text for a single line of a terminal or log: no controls, no direction marks, no line breaks."""
    cleaned = text[: limit * 4].translate(_FOR_LINE).encode("utf-8", "replace").decode("utf-8")
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def for_paste(text: str) -> str:
    """Return text that cannot end a bracketed paste or press a key: CR LF becomes LF, other controls go."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_FOR_PASTE)


def for_screen(text: str) -> str:
    """Return several lines that a terminal may print as they are."""
    return text.replace("\t", "    ").translate(_FOR_SCREEN).encode("utf-8", "replace").decode("utf-8")


def note(screen: str, limit: int = 2048) -> str | None:
    """Return the last lines of a screen for the record, at most limit bytes, or None for an empty one."""
    lines = [line.rstrip() for line in for_screen(screen).splitlines()]
    kept: list[str] = []
    size = 0
    for line in reversed([line for line in lines if line]):
        size += len(line.encode()) + 1
        if size > limit:
            break
        kept.append(line)
    return "\n".join(reversed(kept)) or None


def short_count(number: int) -> str:
    """Return a number for a glance: `950`, `21.4k`, `1.2M`."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + letter
    return str(number)
