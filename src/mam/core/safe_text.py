"""Make untrusted text safe for its destination.

Panes, agents, files and file names may hold control characters that a terminal, a paste or a log line would
act on. Each destination has its own function; no other code strips characters.
"""

from __future__ import annotations

_BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_C0 = {code: None for code in range(0x20)}
_C1 = {code: None for code in range(0x7F, 0xA0)}
_LINE_BREAKS = {0x0A: " ", 0x0D: " ", 0x09: " ", 0x0B: " ", 0x0C: " ", 0x85: " ", 0x2028: " ", 0x2029: " "}

_FOR_LINE = {**_C0, **_C1, **dict.fromkeys(map(ord, _BIDI)), **_LINE_BREAKS}
_FOR_PASTE = {code: None for code in (*_C0, *_C1) if code not in (0x09, 0x0A)}
_FOR_SCREEN = {**{code: None for code in (*_C0, *_C1) if code != 0x0A}, **dict.fromkeys(map(ord, _BIDI))}


# A run of one character that draws a line, and the padding behind a word or a border.
_RULE = r"([\u2500-\u257f\u2580-\u259f\u23af\u2014])\1{3,}|([-=_*~#.])\2{19,}"
_PADDING = r"(?<=\S) {5,}"


def one_line(text: str, limit: int = 2000) -> str:
    """Return text for one line of a terminal or log: no control characters, bidi marks or line breaks."""
    cleaned = text[: limit * 4].translate(_FOR_LINE).encode("utf-8", "replace").decode("utf-8")
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def for_paste(text: str) -> str:
    """Return text that cannot end a bracketed paste or press a key: CR LF becomes LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_FOR_PASTE)


def for_screen(text: str) -> str:
    """Return lines that a terminal can print safely."""
    return text.replace("\t", "    ").translate(_FOR_SCREEN).encode("utf-8", "replace").decode("utf-8")


def note(screen: str, limit: int = 2048) -> str | None:
    """Return the last lines of a screen, at most `limit` bytes, or None for an empty screen.

    Rules and the padding inside of a line are shortened: a person wants to read the words.
    """
    import re

    text = re.sub(_RULE, lambda rule: rule[0][:3], for_screen(screen))
    lines = [re.sub(_PADDING, "    ", line.rstrip()) for line in text.splitlines()]
    kept: list[str] = []
    size = 0
    for line in reversed([line for line in lines if line]):
        size += len(line.encode()) + 1
        if size > limit:
            break
        kept.append(line)
    return "\n".join(reversed(kept)) or None


def short_count(number: int) -> str:
    """Return a number in short form: `950`, `21.4k`, `1.2M`."""
    for size, letter in ((1_000_000, "M"), (1_000, "k")):
        if number >= size:
            return f"{number / size:.1f}".removesuffix(".0") + letter
    return str(number)
