"""Tables for people: columns are as wide as their texts. On a narrow terminal some shrink or are left out.

What is an argument of another verb, such as a name, is never cut, and neither is a time.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mam.surfaces.cli.style import Paint

    # A text and its style.
    Cell = tuple[str, str | None]

GAP = "  "
EMPTY = "-"
LEFT_OUT = "…"


class Column:
    """One column: its title, and what becomes of it on a narrow terminal.

    It may shrink to the width `least` (0: it is never cut); columns of the lowest `rank` shrink first.
    `may_go` removes it before that if all its cells are empty. `from_end` cuts texts at their end instead of
    in the middle. If that is not enough, columns of the lowest `worth` are left out first (0: never).
    """

    __slots__ = ("from_end", "least", "may_go", "rank", "title", "worth")

    def __init__(
        self,
        title: str,
        *,
        least: int = 0,
        rank: int = 0,
        may_go: bool = False,
        from_end: bool = False,
        worth: int = 0,
    ) -> None:
        self.title = title
        self.worth = worth
        self.least = least
        self.rank = rank
        self.may_go = may_go
        self.from_end = from_end


def render(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], paint: Paint) -> list[str]:
    """Return the lines of a table; the caller has made the texts safe for a terminal.

    A `…` at the end of the titles says that columns are left out. If the columns that are never cut do not
    fit, their lines are longer than the terminal is wide.
    """
    indexes = list(range(len(columns)))
    texts = [[column.title, *(row[at][0] for row in rows)] for at, column in enumerate(columns)]
    widths = [max(map(_measure(column), column)) for column in texts]
    if paint.width is None and not paint.colours:
        return _plain(texts, widths)
    count = len(indexes)
    if paint.width is not None:
        indexes = _without_empty(columns, rows, indexes, widths, paint.width)
        count = len(indexes)
        indexes, widths = _fitted(columns, indexes, widths, paint.width)
    visible = [columns[at] for at in indexes]
    visible_widths = [widths[at] for at in indexes]
    sign = f"{GAP}{LEFT_OUT}" if len(indexes) < count else ""
    titles = _line([(column.title, "dim") for column in visible], visible, visible_widths, paint)
    lines = [titles + paint(sign, "dim")]
    return lines + [_line([row[at] for at in indexes], visible, visible_widths, paint) for row in rows]


def _measure(texts: Sequence[str]) -> Callable[[str], int]:
    """Return the function that measures these texts; for ASCII texts `len` is enough and faster."""
    return len if "".join(texts).isascii() else width_of


def _plain(texts: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines for a file or a pipe, uncut and without colours."""
    padded = [_padded(column, width) for column, width in zip(texts, widths, strict=True)]
    return [GAP.join(cells).rstrip() for cells in zip(*padded, strict=True)]


def width_of(text: str) -> int:
    """Return the width of a text in cells of a terminal."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)


def shorten(text: str, width: int) -> str:
    """Return a text cut in the middle to fit, because names differ at both ends."""
    if width_of(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    head, tail = _prefix(text, (width - 1) - (width - 1) // 3), _prefix(text[::-1], (width - 1) // 3)[::-1]
    return f"{head}…{tail}"


def cut(text: str, width: int | None) -> str:
    """Return a text cut at its end to fit."""
    if width is None or width_of(text) <= width:
        return text
    return _prefix(text, width - 1) + "…" if width > 0 else ""


def _prefix(text: str, width: int) -> str:
    used = 0
    for at, char in enumerate(text):
        used += width_of(char)
        if used > width:
            return text[:at]
    return text


def _total(indexes: list[int], widths: list[int]) -> int:
    return sum(widths[at] for at in indexes) + len(GAP) * (len(indexes) - 1)


def _without_empty(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    indexes: list[int],
    widths: list[int],
    room: int,
) -> list[int]:
    for at in reversed(indexes):
        if _total(indexes, widths) <= room:
            break
        if columns[at].may_go and all(row[at][0] == EMPTY for row in rows):
            indexes = [index for index in indexes if index != at]
    return indexes


def _fitted(
    columns: Sequence[Column], indexes: list[int], widths: list[int], room: int
) -> tuple[list[int], list[int]]:
    """Return which columns are shown, and how wide all are."""
    all_shown = len(indexes)
    while True:
        left = room - (len(GAP + LEFT_OUT) if len(indexes) < all_shown else 0)
        fitted = list(widths)
        _shrink(columns, indexes, fitted, left)
        least_worth = min(
            (at for at in indexes if columns[at].worth), key=lambda at: columns[at].worth, default=None
        )
        if _total(indexes, fitted) <= left or least_worth is None:
            return indexes, fitted
        indexes = [at for at in indexes if at != least_worth]


def _shrink(columns: Sequence[Column], indexes: list[int], widths: list[int], room: int) -> None:
    over = _total(indexes, widths) - room
    for at in sorted(indexes, key=lambda index: columns[index].rank):
        least = columns[at].least
        if over > 0 and least and widths[at] > least:
            reduction = min(over, widths[at] - least)
            widths[at] -= reduction
            over -= reduction


def _line(cells: Sequence[Cell], columns: Sequence[Column], widths: list[int], paint: Paint) -> str:
    parts: list[str] = []
    used = 0
    for (text, style), column, width in zip(cells, columns, widths, strict=True):
        room = width if paint.width is None or (column.least == 0 and paint.wraps) else paint.width - used
        if room <= 0:
            # The terminal would wrap blanks and colours beyond its edge into another line.
            break
        room = min(width, room)
        fitted = cut(text, room) if column.from_end else shorten(text, room)
        parts.append(paint(fitted, style) + " " * (room - width_of(fitted)))
        used += width + len(GAP)
    return GAP.join(parts).rstrip()


def _padded(texts: Sequence[str], width: int) -> list[str]:
    if _measure(texts) is len:
        return [text.ljust(width) for text in texts]
    return [text + " " * (width - width_of(text)) for text in texts]
