"""Recorded screens of every kind as grids of styled cells, and strategies that change one thing of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hypothesis import strategies as some
from tests.conformance.recorded_screens import captured, facts_of

from mam.adapters.agents.catalogue import kind
from mam.adapters.agents.kind import Kind, Screen
from mam.core.terminal_cells import NORMAL, Style, parse_cells

_CONFORMANCE = Path(__file__).parents[1] / "conformance"
_CODES = {
    "bold": 1,
    "dim": 2,
    "italic": 3,
    "underline": 4,
    "blink": 5,
    "reverse": 7,
    "hidden": 8,
    "strike": 9,
}
SIGNS = (
    *" xX❯›>─━│┃┌╭╰╮▌▔█■●◉✻⎿·•…/!?1",
    *("漢", "😀", "e\u0301", "\u202e", "\u200b", "\u00a0", "\u05d0", "👩\u200d💻", "\ufffd", "\x7f", "\t"),
)

# The recorded states in which a dialog is open, and those with a draft in the input box.
DIALOGS = {
    "claude": {"api-key", "bypass", "menu", "permission", "question", "trust"},
    "codex": {"locked", "login", "menu", "permission", "trust"},
    "gemini": {"api-key", "login", "menu", "permission", "question", "trust"},
    "hermes": {"confirm", "menu", "no-provider", "permission", "question", "question-in-words"},
    "opencode": {"menu", "no-provider", "permission", "question"},
}
_DRAFTS = {"big-paste", "draft", "shell-mode", "slash-menu"}
DRAFTS = {
    "claude": {*_DRAFTS, "retry-interrupted"},
    "codex": _DRAFTS,
    "gemini": _DRAFTS,
    "hermes": {*_DRAFTS, "draft-in-a-turn"} - {"shell-mode"},
    "opencode": _DRAFTS,
}

Row = tuple[tuple[str, Style], ...]


@dataclass(frozen=True, repr=False)
class Grid:
    """The rows of a screen, the cursor, and the name of the recording that they come from."""

    name: str
    rows: tuple[Row, ...]
    cursor: tuple[int, int]

    def __repr__(self) -> str:
        """Show the words: a style for each cell would fill pages."""
        return f"<Grid {self.name} cursor={self.cursor} words={self.all_words()!r}>"

    @property
    def state(self) -> str:
        """The state that was recorded, whatever the size."""
        return self.name.partition("/")[2].partition("@")[0]

    @property
    def kind(self) -> Kind:
        return kind(self.name.partition("/")[0])

    def screen(self) -> Screen:
        return Screen(self.captured(), *self.cursor)

    def captured(self) -> str:
        """Return the grid as tmux writes a screen: with a sequence wherever the style changes."""
        written: list[str] = []
        style = NORMAL
        for row in self.rows:
            line = []
            for text, other in row:
                if other != style:
                    line.append(_sequence(other))
                    style = other
                line.append(text)
            written.append("".join(line))
        return "\n".join(written)

    def all_words(self) -> str:
        """Return the words of all rows, row by row."""
        return "\n".join(self.words())

    def words(self) -> list[str]:
        """Return what each row says, without empty ones and without spaces around them."""
        said = ("".join(text for text, _ in row).strip() for row in self.rows)
        return [line for line in said if line]


def _sequence(style: Style) -> str:
    codes = ["0", *(str(_CODES[name]) for name in sorted(style.attributes))]
    for colour, base in ((style.foreground, 38), (style.background, 48)):
        if isinstance(colour, int):
            codes.append(f"{base};5;{colour}")
        elif colour is not None:
            codes.append(f"{base};2;" + ";".join(str(int(colour[at : at + 2], 16)) for at in (1, 3, 5)))
    return f"\x1b[{';'.join(codes)}m"


@cache
def paths_and_grids(name: str) -> list[tuple[Path, Grid]]:
    """Return the recorded screens of a kind."""
    folder = _CONFORMANCE / ("screens_hermes" if name == "hermes" else f"screens/{name}")
    return [(path, grid_of(path, f"{name}/{path.stem}")) for path in sorted(folder.glob("*.txt"))]


def recorded(name: str) -> list[Grid]:
    return [grid for _, grid in paths_and_grids(name)]


def grid_of(path: Path, name: str) -> Grid:
    cells = parse_cells(captured(path))
    rows = tuple(tuple((cell.text, cell.style) for cell in row) for row in cells)
    x, y = facts_of(path)["cursor"]
    return Grid(name, rows, (x, y))


def changed_row(grid: Grid, at: int, row: Row) -> Grid:
    return replace(grid, rows=(*grid.rows[:at], row, *grid.rows[at + 1 :]))


def _cell(draw: some.DrawFn, grid: Grid) -> Grid:
    """Change the sign of one cell, mostly of one that shows something."""
    at = draw(some.integers(0, len(grid.rows) - 1))
    row = grid.rows[at]
    column = draw(some.integers(0, len(row)))
    sign = draw(some.sampled_from(SIGNS))
    style = row[column][1] if column < len(row) else NORMAL
    return changed_row(grid, at, (*row[:column], (sign, style), *row[column + 1 :]))


def _attribute(draw: some.DrawFn, grid: Grid) -> Grid:
    """Change the style of one cell, or of all cells of a row from one on."""
    at = draw(some.integers(0, len(grid.rows) - 1))
    row = grid.rows[at]
    if not row:
        return grid
    column = draw(some.integers(0, len(row) - 1))
    end = column + 1 if draw(some.booleans()) else len(row)
    style = draw(styles)
    return changed_row(grid, at, (*row[:column], *((text, style) for text, _ in row[column:end]), *row[end:]))


def _cursor(draw: some.DrawFn, grid: Grid) -> Grid:
    return replace(grid, cursor=(draw(some.integers(0, 120)), draw(some.integers(0, 50))))


def _blank_row(draw: some.DrawFn, grid: Grid) -> Grid:
    return changed_row(grid, draw(some.integers(0, len(grid.rows) - 1)), ())


def _repeat_row(draw: some.DrawFn, grid: Grid) -> Grid:
    at, other = (draw(some.integers(0, len(grid.rows) - 1)) for _ in range(2))
    return changed_row(grid, at, grid.rows[other])


def _remove_row(draw: some.DrawFn, grid: Grid) -> Grid:
    at = draw(some.integers(0, len(grid.rows) - 1))
    return replace(grid, rows=(*grid.rows[:at], *grid.rows[at + 1 :]))


def _cut_below(draw: some.DrawFn, grid: Grid) -> Grid:
    return replace(grid, rows=grid.rows[: draw(some.integers(0, len(grid.rows)))])


def _cut_above(draw: some.DrawFn, grid: Grid) -> Grid:
    count = draw(some.integers(0, len(grid.rows)))
    return replace(grid, rows=grid.rows[count:], cursor=(grid.cursor[0], max(0, grid.cursor[1] - count)))


def _cut_right(draw: some.DrawFn, grid: Grid) -> Grid:
    width = draw(some.integers(0, 120))
    return replace(grid, rows=tuple(row[:width] for row in grid.rows))


def _cut_left(draw: some.DrawFn, grid: Grid) -> Grid:
    count = draw(some.integers(1, 40))
    x, y = grid.cursor
    return replace(grid, rows=tuple(row[count:] for row in grid.rows), cursor=(max(0, x - count), y))


def _shift_right(draw: some.DrawFn, grid: Grid) -> Grid:
    spaces = ((" ", NORMAL),) * draw(some.integers(1, 20))
    x, y = grid.cursor
    return replace(grid, rows=tuple((*spaces, *row) for row in grid.rows), cursor=(x + len(spaces), y))


def _shift_down(draw: some.DrawFn, grid: Grid) -> Grid:
    count = draw(some.integers(1, 20))
    x, y = grid.cursor
    return replace(grid, rows=(*((),) * count, *grid.rows), cursor=(x, y + count))


def _narrower(draw: some.DrawFn, grid: Grid) -> Grid:
    """Wrap each row, as a terminal does that has become narrower and whose program has not drawn again."""
    width = draw(some.integers(10, 100))
    rows = [row[start : start + width] for row in grid.rows for start in range(0, max(1, len(row)), width)]
    return replace(grid, rows=tuple(rows))


def _append_row(draw: some.DrawFn, grid: Grid) -> Grid:
    row = draw(some.sampled_from(_STRANGE_ROWS))
    at = draw(some.integers(0, len(grid.rows)))
    x, y = grid.cursor
    rows = (*grid.rows[:at], tuple((sign, NORMAL) for sign in row), *grid.rows[at:])
    return replace(grid, rows=rows, cursor=(x, y + (at <= y)))


# Rows that an agent may write anywhere in its conversation.
_STRANGE_ROWS = (
    "❯\u00a0",
    "❯ 1. Yes",
    "  2. No",
    "› ",
    "─" * 40,
    "╭" + "─" * 40 + "╮",
    "│ > Type your message" + " " * 19 + "│",
    "╰" + "─" * 40 + "╯",
    "┃  Ask anything…",
    "Esc to cancel · Enter to confirm",
    "esc to interrupt",
    "a" * 300,
    "漢" * 60,
)
styles = some.builds(
    Style,
    some.frozensets(some.sampled_from(sorted(_CODES)), max_size=2),
    some.sampled_from([None, 1, 8, 244, "#808080"]),
    some.sampled_from([None, 0, 7, "#262626"]),
)
Change = Callable[[some.DrawFn, Grid], Grid]
# Changes that leave every word of the screen where it is.
KEEPING: tuple[Change, ...] = (_attribute, _cursor, _shift_right, _shift_down)
CHANGES: tuple[Change, ...] = (
    *KEEPING,
    _cell,
    _blank_row,
    _repeat_row,
    _remove_row,
    _cut_below,
    _cut_above,
    _cut_right,
    _cut_left,
    _narrower,
    _append_row,
)


@some.composite
def changed(
    draw: some.DrawFn, grids: list[Grid], changes: tuple[Change, ...] = CHANGES, most: int = 1
) -> Grid:
    """Draw a recorded screen of which one to so many things are not as they were recorded."""
    grid = draw(some.sampled_from(grids))
    for _ in range(draw(some.integers(1, most))):
        if grid.rows:
            grid = draw(some.sampled_from(changes))(draw, grid)
    return grid
