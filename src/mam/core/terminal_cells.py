"""Reads a screen that tmux captured with its styles, and writes it anew as text that may leave mam.

tmux writes SGR sequences between the characters. A style holds until the next sequence, also across line
ends. Links (OSC 8), charset shifts and every other sequence are dropped. The plain text of a screen comes
from one regular expression; cells are made only for the rows that somebody asks for.
"""

from __future__ import annotations

import re
from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    # A number of the palette (0 to 255), `#rrggbb`, or None for the terminal's own colour.
    Colour = int | str | None
    Run = tuple[str, "Style"]

_SHIFTS = "\x0e\x0f"
_SEQUENCE = re.compile(
    # SGR, then other control sequences, strings (links, titles) up to their end, charsets, the rest.
    r"\x1b\[(?P<sgr>[0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]+[0-~]?"
    r"|\x1b[0-~]?"
    r"|[\x0e\x0f]"
)
_COLOUR_OR_DIM = re.compile(r"\x1b\[(?:[0-9:]*;)*(?:2|[34][0-8]|9[0-7]|10[0-7])[;:m]")
_TAB_STOP = 8
_JOINER = "\u200d"
_ATTRIBUTES = {
    1: "bold",
    2: "dim",
    3: "italic",
    4: "underline",
    5: "blink",
    7: "reverse",
    8: "hidden",
    9: "strike",
    21: "underline",
}
_ENDS = {
    22: ("bold", "dim"),
    23: ("italic",),
    24: ("underline",),
    25: ("blink",),
    27: ("reverse",),
    28: ("hidden",),
    29: ("strike",),
}
_FOREGROUNDS: dict[int, Colour] = {
    39: None,
    **{30 + n: n for n in range(8)},
    **{90 + n: 8 + n for n in range(8)},
}
_BACKGROUNDS: dict[int, Colour] = {code + 10: colour for code, colour in _FOREGROUNDS.items()}
# What follows these codes is a colour: of the sign, of the cell, of the underline (which mam does not keep).
_FOREGROUND, _BACKGROUND, _UNDERLINE = 38, 48, 58
# What a text that leaves mam may have. Blinking and hidden text is shown as any other.
_WRITTEN = {"bold": 1, "dim": 2, "italic": 3, "underline": 4, "reverse": 7, "strike": 9}


class Style:
    """How a cell is drawn: its attributes by name, and its colours."""

    __slots__ = ("attributes", "background", "foreground")

    def __init__(
        self,
        attributes: frozenset[str] = frozenset(),
        foreground: Colour = None,
        background: Colour = None,
    ) -> None:
        self.attributes = attributes
        self.foreground = foreground
        self.background = background

    @property
    def is_dim(self) -> bool:
        """Whether the cell is drawn with half its brightness."""
        return "dim" in self.attributes

    @property
    def is_bold(self) -> bool:
        """Whether the cell is drawn bold."""
        return "bold" in self.attributes

    @property
    def is_reverse(self) -> bool:
        """Whether the colours of the cell are exchanged: so programs draw a cursor of their own."""
        return "reverse" in self.attributes

    def __eq__(self, other: object) -> bool:
        """Two styles are equal if they look the same."""
        return isinstance(other, Style) and self._key() == other._key()

    def __hash__(self) -> int:
        """Return a number that equal styles share."""
        return hash(self._key())

    def __repr__(self) -> str:
        """Show what differs from the normal style."""
        return f"<Style {sorted(self.attributes)} {self.foreground} on {self.background}>"

    def _key(self) -> tuple[frozenset[str], Colour, Colour]:
        return self.attributes, self.foreground, self.background


NORMAL = Style()


class Cell:
    """One character of a screen with the marks that join it, its first column, its width and its style."""

    __slots__ = ("column", "style", "text", "width")

    def __init__(self, text: str, column: int, width: int, style: Style) -> None:
        self.text = text
        self.column = column
        self.width = width
        self.style = style

    @property
    def is_blank(self) -> bool:
        """Whether the cell shows no sign, whatever its colours are."""
        return not self.text.strip()

    def __repr__(self) -> str:
        """Show the sign and where it is."""
        return f"<Cell {self.text!r} at {self.column} {self.style!r}>"


def plain_text(captured: str) -> str:
    """Return a captured screen without its sequences, as `capture-pane` gives it without `-e`."""
    if "\x1b" not in captured and not any(shift in captured for shift in _SHIFTS):
        return captured
    # tmux trims the spaces at the end of a line, but not those before a sequence.
    return "\n".join([line.rstrip(" ") for line in _SEQUENCE.sub("", captured).split("\n")])


def is_monochrome(captured: str) -> bool:
    """Tell whether a captured screen has neither colours nor dim text."""
    return _COLOUR_OR_DIM.search(captured) is None


class StyledScreen:
    """A captured screen whose rows are read into cells when they are asked for."""

    __slots__ = ("_ends", "_lines", "_rows")

    def __init__(self, captured: str) -> None:
        self._lines = captured.split("\n")
        self._rows: dict[int, list[Cell]] = {}
        # The styles in which rows end, as far as they are known.
        self._ends: dict[int, Style] = {}

    def row(self, number: int) -> list[Cell]:
        """Return the cells of a row, counted from 0; none for a row that the screen does not have."""
        if not 0 <= number < len(self._lines):
            return []
        if number not in self._rows:
            runs, self._ends[number] = _runs(self._lines[number], self._style_before(number))
            self._rows[number] = _cells(runs)
        return self._rows[number]

    def _style_before(self, number: int) -> Style:
        """Return the style in which the row before ended."""
        first = number
        while first and first - 1 not in self._ends:
            first -= 1
            if _resets(self._lines[first]):
                break
        style = self._ends.get(first - 1, NORMAL)
        for row in range(first, number):
            style = self._ends[row] = _runs(self._lines[row], style)[1]
        return style


def styled_rows(captured: str) -> list[list[Run]]:
    """Return the rows of a captured screen as runs: pieces of text, each with its style."""
    rows: list[list[Run]] = []
    style = NORMAL
    for line in captured.split("\n"):
        runs, style = _runs(line, style)
        rows.append(runs)
    return rows


def parse_cells(captured: str) -> list[list[Cell]]:
    """Return the cells of a captured screen, row by row."""
    return [_cells(runs) for runs in styled_rows(captured)]


def columns(text: str) -> int:
    """Return how many columns a line of plain text takes."""
    cells = _cells([(text, NORMAL)])
    return cells[-1].column + cells[-1].width if cells else 0


def written_anew(captured: str, *, coloured: bool = True) -> str:
    """Return a captured screen as text for a terminal, a page or a log.

    Nothing of what a program wrote is passed on but its signs: the sequences are written anew, and they are
    SGR for colours and for the attributes of an allow list. Each line ends in the normal style.
    """
    from mam.core.safe_text import for_screen

    lines: list[str] = []
    for row in styled_rows(captured):
        parts, current = [], _sgr(NORMAL)
        for text, style in row:
            if coloured and (sgr := _sgr(style)) != current:
                parts.append(sgr)
                current = sgr
            parts.append(for_screen(text))
        if current != _sgr(NORMAL):
            parts.append(_sgr(NORMAL))
        lines.append("".join(parts))
    return "\n".join(lines)


@lru_cache(1024)
def _sgr(style: Style) -> str:
    """Return the sequence that sets a style, whatever the style before was."""
    codes = ["0", *(str(code) for name, code in _WRITTEN.items() if name in style.attributes)]
    for colour, base in ((style.foreground, 38), (style.background, 48)):
        if isinstance(colour, int):
            codes.append(f"{base};5;{colour}")
        elif colour is not None:
            codes.append(f"{base};2;" + ";".join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5)))
    return f"\x1b[{';'.join(codes)}m"


def _resets(line: str) -> bool:
    """Tell whether a line has a sequence after which no earlier style matters."""
    return "\x1b[0m" in line or "\x1b[0;" in line or "\x1b[m" in line


def _runs(line: str, style: Style) -> tuple[list[Run], Style]:
    """Return the runs of a line that begins in a style, and the style in which it ends."""
    if "\x1b" not in line and not any(shift in line for shift in _SHIFTS):
        return ([(line, style)] if line else []), style
    runs: list[Run] = []
    at = 0
    for found in _SEQUENCE.finditer(line):
        if found.start() > at:
            runs.append((line[at : found.start()], style))
        if found["sgr"] is not None:
            style = _with_sgr(style, found["sgr"])
        at = found.end()
    if at < len(line):
        runs.append((line[at:], style))
    return runs, style


def _cells(runs: Iterable[Run]) -> list[Cell]:
    cells: list[Cell] = []
    column = 0
    for text, style in runs:
        column = _add_cells(cells, text, column, style)
    return cells


def _add_cells(cells: list[Cell], text: str, column: int, style: Style) -> int:
    if text.isascii() and text.isprintable():
        cells.extend([Cell(sign, column + at, 1, style) for at, sign in enumerate(text)])
        return column + len(text)
    for sign in text:
        width = _TAB_STOP - column % _TAB_STOP if sign == "\t" else sign_width(sign)
        if cells and (width == 0 or cells[-1].text.endswith(_JOINER)):
            # A mark joins the sign before it, and so does the sign after a joiner.
            cells[-1].text += sign
            continue
        cells.append(Cell(sign, column, width, style))
        column += width
    return column


@lru_cache(4096)
def sign_width(sign: str) -> int:
    """Return how many columns tmux gives to one character by itself."""
    from unicodedata import category, east_asian_width

    if sign < "\u0300":
        return 0 if category(sign) == "Cc" else 1
    is_jamo = "\u1160" <= sign <= "\u11ff" or "\ud7b0" <= sign <= "\ud7ff"
    if is_jamo or category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(sign) in ("W", "F") else 1


@lru_cache(4096)
def _with_sgr(style: Style, parameters: str) -> Style:
    """Return the style after an SGR sequence; a parameter that mam does not know changes nothing."""
    attributes, foreground, background = set(style.attributes), style.foreground, style.background
    groups = [group.split(":") for group in parameters.split(";")]
    at = 0
    while at < len(groups):
        code, at = _number(groups[at][0]), at + 1
        if code == 0:
            attributes, foreground, background = set(), None, None
        elif code in _ATTRIBUTES:
            _change_attribute(attributes, _ATTRIBUTES[code], groups[at - 1])
        elif code in _ENDS:
            attributes.difference_update(_ENDS[code])
        elif code in _FOREGROUNDS:
            foreground = _FOREGROUNDS[code]
        elif code in _BACKGROUNDS:
            background = _BACKGROUNDS[code]
        elif code in (_FOREGROUND, _BACKGROUND, _UNDERLINE):
            colour, at = _colour(groups, at)
            foreground = colour if code == _FOREGROUND else foreground
            background = colour if code == _BACKGROUND else background
    return Style(frozenset(attributes), foreground, background)


def _change_attribute(attributes: set[str], name: str, group: list[str]) -> None:
    """Add an attribute; `4:0` removes the underline."""
    if group[1:] == ["0"]:
        attributes.discard(name)
    else:
        attributes.add(name)


def _colour(groups: list[list[str]], at: int) -> tuple[Colour, int]:
    """Return the colour after 38, 48 or 58, and where the next parameter is."""
    own = groups[at - 1][1:]
    if own:
        values = [_number(value) for value in own]
        # 38:2::R:G:B names a colour space, mostly empty, before the colour.
        return _colour_of(values[0], values[2:] if len(values) > 4 else values[1:]), at
    if at >= len(groups):
        return None, at
    form = _number(groups[at][0])
    count = {5: 1, 2: 3}.get(form, 0)
    values = [_number(group[0]) for group in groups[at + 1 : at + 1 + count]]
    return _colour_of(form, values), at + 1 + count


def _colour_of(form: int, values: list[int]) -> Colour:
    if any(not 0 <= value <= 255 for value in values):
        return None
    if form == 5 and values:
        return values[0]
    return "#{:02x}{:02x}{:02x}".format(*values) if form == 2 and len(values) >= 3 else None


def _number(text: str) -> int:
    if not text:
        return 0
    return int(text) if len(text) <= 3 else -1
