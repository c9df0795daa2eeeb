"""Reading the screen of opencode.

The input box has a bar `┃` down its left side that ends with `╹▀▀▀`. The last line in the box names the agent
and the model, and the line below the box shows whether opencode is busy. A permission or a question replaces
the input box. A menu covers a part of the screen, and the input box stays visible; the first line of a menu
ends with `esc`.
"""

from __future__ import annotations

import re
from itertools import pairwise

from mam.adapters.agents.dialog_options import Choices
from mam.adapters.agents.input_box import read_contents
from mam.adapters.agents.kind import ScreenState
from mam.core.activity import IDLE, SHELL_MODE, UNKNOWN, WAITING, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.box_contents import BoxContents
    from mam.adapters.agents.kind import Screen
    from mam.core.terminal_cells import Colour

_FOOT = re.compile(r"( *)╹(▀{8,})")
_BAR = "┃"
# The column of the text, counted from the bar.
_INDENT = 3
_BUSY = re.compile(r" *(?:[⬝■]{4,}|\[⋯\])")
_AT_REST = re.compile(r"(?:^| )\S+ commands\Z")
_SUGGESTION = r'Ask anything…(?: ".*)?'
_SHELL = "Shell"
_DOT = "·"
# How many rows of text the input box shows at most.
_MOST_ROWS = 6
_QUEUED = re.compile(r"^ *┃ +QUEUED$", re.MULTILINE)
_ASKS_PERMISSION = re.compile(r"┃ +△ (?:Permission required|Always allow|Reject permission)\b")
_SIDE_BY_SIDE = re.compile(r"^(Allow once|Confirm) {3}(\S.*)", re.MULTILINE)
_ASKS = re.compile(r"┃ .*\benter (?:submit|toggle|confirm)  esc dismiss\b")
_CONFIRMS = re.compile(r"\benter confirm\b")
# The widths of a dialog without its padding, which is 4 columns in a list and 2 in a question.
_INNER = tuple(width - padding for width in (60, 88, 116) for padding in (8, 4))
_ESC = re.compile(r" {3}esc(?= {3}|\Z)")
# The titles of menus that mam reports as another dialog; only the login was ever seen.
_TITLES = (
    ("update", re.compile(r"Update (?:Available|Complete)")),
    ("limit", re.compile(r".*limit reached")),
    ("login", re.compile(r"Connect a provider")),
)
_LIMIT = re.compile(r"limit reached\b")
_RESET = re.compile(r"reset in ([^.\n]+)")


def read_screen(screen: Screen) -> ScreenState:
    """Return the activity, the dialog and the input box of a screen."""
    lines = [line.rstrip() for line in screen.text.rstrip().split("\n")]
    menu = _find_menu(lines)
    if menu is not None:
        return menu
    for number in range(len(lines) - 1, -1, -1):
        if foot := _FOOT.match(lines[number]):
            return _read_box(lines, number, foot, screen)
    return _read_dialog(lines)


def _find_menu(lines: list[str]) -> ScreenState | None:
    """Return the menu that covers a part of the screen; None if there is none."""
    for number, line in enumerate(lines[:-1]):
        for esc in _ESC.finditer(line):
            for width in _INNER:
                left = esc.end() - width
                title = line[max(0, left) : esc.start()].strip()
                # The padding and the line below the title of a menu are empty: they show no conversation.
                if (
                    left >= 2
                    and title
                    and not line[left - 2 : left].strip()
                    and line[left] != " "
                    and not lines[number + 1][left - 2 : esc.end()].strip()
                ):
                    inside = "\n".join(row[left : esc.end()] for row in lines[number:])
                    return _read_menu(title, inside)
    return None


def _read_menu(title: str, inside: str) -> ScreenState:
    for name, pattern in _TITLES:
        if pattern.match(title):
            return ScreenState(WAITING, dialog=name, detail=_reset(inside) if name == "limit" else "")
    return ScreenState(WAITING, dialog="menu")


def _reset(text: str) -> str:
    match = _RESET.search(" ".join(text.split()))
    return f"in {match[1]}" if match else ""


def _read_box(lines: list[str], bottom: int, foot: re.Match[str], screen: Screen) -> ScreenState:
    left, right = foot.end(1), foot.end(2)
    top = bottom
    # The list of commands just above the box has bars too, in another colour.
    colour = _colour_at(screen, bottom, left)
    while top and lines[top - 1][left : left + 1] == _BAR and _colour_at(screen, top - 1, left) == colour:
        top -= 1
    rows = [line[left + 1 : right].strip() for line in lines[top:bottom]]
    if not rows or _is_cursor_outside(screen, top, bottom):
        return ScreenState()
    if rows[-1] == _SHELL:
        return ScreenState(UNKNOWN, box="draft", detail=SHELL_MODE)
    below = lines[bottom + 1][:right].rstrip() if bottom + 1 < len(lines) else ""
    # The first row is empty, unless the box is one row high.
    contents = _read_contents(screen, top if rows[0] else top + 1, bottom - 1, left, right)
    if _BUSY.match(below):
        if _LIMIT.search(below):
            return ScreenState(WAITING, dialog="limit", detail=_reset(below))
        above = "\n".join(line[:right].rstrip() for line in lines[:top])
        return ScreenState(
            WORKING, contents=contents, detail="messages are queued" if _QUEUED.search(above) else ""
        )
    return ScreenState(IDLE if _AT_REST.search(below) else UNKNOWN, contents=contents)


def _read_contents(screen: Screen, top: int, mode_row: int, left: int, right: int) -> BoxContents:
    """Return what is in the input box; a suggestion has the colour of the muted words below it.

    So a suggestion is known in every theme. The row of the mode is `AGENT · MODEL PROVIDER`.
    """
    muted = _muted_colour(screen, mode_row, left, right)
    return read_contents(
        screen,
        top,
        mode_row,
        left + _INDENT,
        right=right,
        is_suggested=lambda style: muted is not None and style.foreground == muted and not style.attributes,
        known=_SUGGESTION,
        most_rows=_MOST_ROWS,
    )


def _colour_at(screen: Screen, row: int, column: int) -> Colour:
    return next((cell.style.foreground for cell in screen.cells(row) if cell.column == column), None)


def _muted_colour(screen: Screen, mode_row: int, left: int, right: int) -> Colour:
    """Return the colour of the dot in the row of the mode; None if the model has the same colour."""
    written = [cell for cell in screen.cells(mode_row) if left < cell.column < right and not cell.is_blank]
    for dot, model in pairwise(written):
        if dot.text == _DOT:
            muted = dot.style.foreground
            return muted if muted != model.style.foreground else None
    return None


def _is_cursor_outside(screen: Screen, top: int, bottom: int) -> bool:
    """Tell whether the cursor is known to be outside the input box: then something else takes the keys."""
    return bool(screen.cursor_x or screen.cursor_y) and not top <= screen.cursor_y < bottom


def read_permission(text: str) -> Choices | None:
    """Return the options of a permission; None if the screen shows none."""
    dialog = dialog_text(text)
    if not dialog.startswith(("△ Permission required", "△ Always allow", "△ Reject permission")):
        return None
    options = _SIDE_BY_SIDE.search(dialog)
    labels = [options[1], *re.split(r" {3,}", options[2])] if options else []
    return Choices(labels, None, dialog, is_numbered=False)


def dialog_text(text: str) -> str:
    """Return the text beside the bar at the bottom of the screen, without the sidebar on the right."""
    block = _last_block([line.rstrip() for line in text.rstrip().split("\n")])
    rows = [re.split(r" {6,}", line.partition(_BAR)[2])[0].strip() for line in block]
    return "\n".join(row for row in rows if row)


def _last_block(lines: list[str]) -> list[str]:
    """Return the lines with a bar at the bottom of the screen."""
    first = len(lines)
    while first and lines[first - 1].lstrip().startswith(_BAR):
        first -= 1
    return lines[first:]


def _read_dialog(lines: list[str]) -> ScreenState:
    text = "\n".join(_last_block(lines))
    if _ASKS_PERMISSION.search(text) and _CONFIRMS.search(text):
        return ScreenState(WAITING, dialog="permission")
    return ScreenState(WAITING, dialog="question") if _ASKS.search(text) else ScreenState()
