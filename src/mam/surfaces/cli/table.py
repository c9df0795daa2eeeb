"""Tables for people: columns as wide as they need, narrower only where a terminal is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mam.surfaces.cli.style import Paint

    # A text, and the style it is painted in.
    Cell = tuple[str, str | None]

GAP = "  "
EMPTY = "-"


class Column:
    """One column: its title, and how it gives way on a narrow terminal.

    It may shrink to the width `least` (0: it keeps its width), those of the lowest `rank` first.
    `may_go` drops it before that where it says nothing, `from_end` cuts it at its end.
    """

    __slots__ = ("from_end", "least", "may_go", "rank", "title")

    def __init__(
        self, title: str, *, least: int = 0, rank: int = 0, may_go: bool = False, from_end: bool = False
    ) -> None:
        self.title = title
        self.least = least
        self.rank = rank
        self.may_go = may_go
        self.from_end = from_end


def render(columns: Sequence[Column], rows: Sequence[Sequence[Cell]], paint: Paint) -> list[str]:
    """Return the lines of a table; the texts are clean already."""
    kept = list(range(len(columns)))
    texts = [[column.title, *(row[at][0] for row in rows)] for at, column in enumerate(columns)]
    widths = [max(map(_measure(column), column)) for column in texts]
    if paint.width is None and not paint.colours:
        return _plain(texts, widths)
    if paint.width is not None:
        kept = _drop(columns, rows, kept, widths, paint.width)
        _shrink(columns, kept, widths, paint.width)
    shown = [columns[at] for at in kept]
    room = [widths[at] for at in kept]
    lines = [_line([(column.title, "dim") for column in shown], shown, room, paint)]
    return lines + [_line([row[at] for at in kept], shown, room, paint) for row in rows]


def _measure(texts: Sequence[str]) -> Callable[[str], int]:
    """Return what measures these texts: nearly always they are as wide as they are long."""
    return len if "".join(texts).isascii() else width_of


def _plain(texts: Sequence[Sequence[str]], widths: Sequence[int]) -> list[str]:
    """Return the lines for a file or a pipe: nothing is cut and nothing painted."""
    padded = [[_padded(text, width) for text in column] for column, width in zip(texts, widths, strict=True)]
    return [GAP.join(cells).rstrip() for cells in zip(*padded, strict=True)]


def width_of(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def shorten(text: str, width: int) -> str:
    """Return a text that fits, with its beginning and its end: names differ in both."""
    if width_of(text) <= width:
        return text
    if width <= 1:
        return "…"[:width]
    head, tail = _prefix(text, (width - 1) - (width - 1) // 3), _prefix(text[::-1], (width - 1) // 3)[::-1]
    return f"{head}…{tail}"


def cut(text: str, width: int | None) -> str:
    """Return the beginning of a text that fits."""
    if width is None or width_of(text) <= width:
        return text
    return _prefix(text, width - 1) + "…" if width > 0 else ""


def _prefix(text: str, width: int) -> str:
    used = 0
    for at, one in enumerate(text):
        used += width_of(one)
        if used > width:
            return text[:at]
    return text


def _total(kept: list[int], widths: list[int]) -> int:
    return sum(widths[at] for at in kept) + len(GAP) * (len(kept) - 1)


def _drop(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], kept: list[int], widths: list[int], room: int
) -> list[int]:
    for at in reversed(kept):
        if _total(kept, widths) <= room:
            break
        if columns[at].may_go and all(row[at][0] == EMPTY for row in rows):
            kept = [one for one in kept if one != at]
    return kept


def _shrink(columns: Sequence[Column], kept: list[int], widths: list[int], room: int) -> None:
    over = _total(kept, widths) - room
    for at in sorted(kept, key=lambda one: columns[one].rank):
        least = columns[at].least
        if over > 0 and least and widths[at] > least:
            given = min(over, widths[at] - least)
            widths[at] -= given
            over -= given


def _line(cells: Sequence[Cell], columns: Sequence[Column], widths: list[int], paint: Paint) -> str:
    parts: list[str] = []
    used = 0
    for (text, style), column, width in zip(cells, columns, widths, strict=True):
        room = width if paint.width is None else min(width, paint.width - used)
        if room <= 0:
            # Blanks and colours behind the edge of the terminal would be a line of their own there.
            break
        shown = cut(text, room) if column.from_end else shorten(text, room)
        parts.append(paint(shown, style) + " " * (room - width_of(shown)))
        used += width + len(GAP)
    return GAP.join(parts).rstrip()


def _padded(text: str, width: int) -> str:
    return text.ljust(width) if text.isascii() else text + " " * (width - width_of(text))
