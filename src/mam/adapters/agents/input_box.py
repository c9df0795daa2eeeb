"""Finding the input box on a screen, telling a suggestion in it from a draft, and reading the draft.

An empty input box may show a suggestion, in a style of its own and with the cursor before it. Anything else
in the box is a draft, also a suggestion with one cell in another style.
"""

from __future__ import annotations

import re

from mam.adapters.agents.ambiguous_width_characters import without_joining_signs
from mam.adapters.agents.box_contents import BoxContents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mam.adapters.agents.kind import Screen
    from mam.core.terminal_cells import Cell, Style

# No program that mam knows shows less than this of a long draft, unless its kind says so.
MOST_ROWS = 8
_RULE = r"─{4,}.*─\Z"
_ABOVE = 6


class Box:
    """The text in the input box, the lines just above and below it, and its rows on the screen."""

    __slots__ = ("above", "below", "bottom", "inside", "top")

    def __init__(self, inside: str, above: str, below: str, top: int, bottom: int) -> None:
        """Keep what was found. `top` is the row of the prompt, `bottom` the row after the last one."""
        self.inside = inside
        self.above = above
        self.below = below
        self.top = top
        self.bottom = bottom


def is_dim(style: Style) -> bool:
    """Tell whether a style is that of most suggestions: dim."""
    return style.is_dim


def screen_lines(text: str) -> list[str]:
    """Return the lines of a screen, without trailing spaces and without empty lines at the bottom."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def find_box(lines: Sequence[str], prompt: str = "❯") -> Box | None:
    """Return the lowest input box on the screen; None if there is none."""
    rules = [number for number, line in enumerate(lines) if re.match(_RULE, line)]
    if len(rules) < 2:
        return None
    top, bottom = rules[-2], rules[-1]
    if top + 1 >= bottom or not lines[top + 1].startswith(prompt):
        return None
    inside = "".join(lines[top + 1 : bottom])[len(prompt) :].replace("\xa0", " ").strip()
    above, below = "\n".join(lines[max(0, top - _ABOVE) : top]), "\n".join(lines[bottom + 1 :])
    return Box(inside, above, below, top + 1, bottom)


def read_contents(
    screen: Screen,
    top: int,
    bottom: int,
    left: int,
    *,
    right: int | None = None,
    below_left: int | None = None,
    is_suggested: Callable[[Style], bool] = is_dim,
    known: str | None = None,
    most_rows: int = MOST_ROWS,
) -> BoxContents:
    """Return what is in an input box whose text begins in the row `top` and the column `left`.

    `bottom` and `right` are the row and the column after the box; the rows below the first one begin in the
    column `below_left` if it is given. A box of `most_rows` may show only the end of a longer draft.

    A program that draws a cursor of its own draws the first cell of a suggestion reversed. On a monochrome
    screen only the suggestions count whose words match the pattern `known`.
    """
    others = left if below_left is None else below_left
    rows = [
        _part(screen.cells(number), left if number == top else others, right) for number in range(top, bottom)
    ]
    is_at_start = (screen.cursor_x, screen.cursor_y) == (left, top)
    # Invisible signs of an earlier text may remain in the box.
    written = [cell for row in rows for cell in row if without_joining_signs(cell.text).strip()]
    if not written:
        # Somebody may have typed spaces. A cursor that is elsewhere says nothing of the box.
        return BoxContents() if is_at_start or not top <= screen.cursor_y < bottom else BoxContents("")
    typed = [cell for cell in written if not is_suggested(cell.style)]
    if is_at_start and _is_suggestion(written, typed, left):
        return BoxContents(has_suggestion=True)
    lines = ["".join(cell.text for cell in row if not is_suggested(cell.style)).rstrip() for row in rows]
    draft = "\n".join(lines).strip("\n")
    is_known = known is not None and re.fullmatch(known, draft.strip()) is not None
    if is_at_start and is_known and screen.is_monochrome:
        return BoxContents(has_suggestion=True)
    return BoxContents(draft, shows_end_only=len(rows) >= most_rows)


def _is_suggestion(written: Sequence[Cell], typed: Sequence[Cell], left: int) -> bool:
    """Tell whether the signs in a box are a suggestion; the first one may be below a drawn cursor."""
    if len(written) == len(typed):
        return False
    is_below_cursor = len(typed) == 1 and typed[0] is written[0] and typed[0].column == left
    return not typed or (is_below_cursor and typed[0].style.is_reverse)


def _part(cells: Sequence[Cell], left: int, right: int | None) -> list[Cell]:
    return [cell for cell in cells if cell.column >= left and (right is None or cell.column < right)]
