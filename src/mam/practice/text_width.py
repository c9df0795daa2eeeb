"""Measures the width of text on a terminal, and cleans foreign text for printing.

The widths were measured in tmux 3.3a: a joined emoji takes the cells of its first part, and combining marks
take none. Soft hyphens and bidirectional controls are never printed, because terminals disagree about their
width.
"""

from __future__ import annotations

from unicodedata import category, east_asian_width

_JOINER = "\u200d"
_KEPT_FORMATS = ("\u200c", _JOINER)
_NOT_PRINTED = "\ufffd"
_TAB = "    "


def char_cells(char: str) -> int:
    """Return the cells one character takes by itself."""
    if char < "\u0300":
        return 1
    if category(char) in ("Mn", "Me", "Cf") or "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7ff":
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1


def cells(text: str) -> int:
    """Return the cells a clean text takes on one row."""
    if text.isascii():
        return len(text)
    total = 0
    joined = False
    for char in text:
        if not joined:
            total += char_cells(char)
        joined = char == _JOINER
    return total


def fitting(text: str, start: int, room: int) -> int:
    """Return the end of the longest piece of `text` from `start` that fits in `room` cells.

    The piece has at least one character, so that a caller that cuts rows always moves on.
    """
    used = 0
    joined = False
    for index in range(start, len(text)):
        if not joined:
            used += char_cells(text[index])
        if used > room and index > start:
            return index
        joined = text[index] == _JOINER
    return len(text)


def shorten(text: str, room: int) -> str:
    """Return `text`, its end replaced by `…` if it does not fit in `room` cells."""
    if cells(text) <= room:
        return text
    head = text[: fitting(text, 0, room - 1)].rstrip()
    return (head if cells(head) < room else "") + "…"[:room]


def shorten_left(text: str, room: int) -> str:
    """Return `text`, its beginning replaced by `…` if it does not fit: the end of a path says more."""
    if cells(text) <= room:
        return text
    start = len(text)
    while start > 0 and cells(text[start - 1 :]) < room:
        start -= 1
    return "…" + text[start:]


def wrap(text: str, room: int) -> list[str]:
    """Return one paragraph as rows of at most `room` cells, broken at spaces where there are any.

    Breaks before the last row do not depend on what follows, so text that grows can be
    wrapped piece by piece. Spaces at the end of the last row are kept.
    """
    rows: list[str] = []
    start = 0
    while True:
        end = fitting(text, start, max(room, 1))
        if end == len(text):
            rows.append(text[start:])
            return rows
        indent = start
        while indent < end and text[indent] == " ":
            indent += 1
        space = end if text[end] == " " else text.rfind(" ", indent, end)
        if space <= indent:
            rows.append(text[start:end])
            start = end
        else:
            rows.append(text[start:space].rstrip(" "))
            start = space + 1


def clean_char(char: str) -> str:
    """Return what may be printed for one character that is not printable as it is."""
    if char == "\t":
        return _TAB
    if char < " ":
        return "^" + chr(ord(char) + 64)
    if char == "\x7f":
        return "^?"
    kind = category(char)
    if kind in ("Cc", "Cs", "Zl", "Zp"):
        return _NOT_PRINTED
    if kind == "Cf" and char not in _KEPT_FORMATS and not "\U000e0020" <= char <= "\U000e007f":
        return ""
    return char


def clean(text: str) -> str:
    """Return one line of foreign text without anything that a terminal acts upon."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else clean_char(char) for char in text)


def clean_lines(text: str) -> list[str]:
    """Return foreign text as clean lines; only LF separates lines."""
    return [clean(line) for line in text.split("\n")]
