"""Reading opencode's screen.

The box has a bar `┃` down its left side that ends in `╹▀▀▀`; the last line in it names agent and model, and
the line below says whether it is busy. Permission and question take the place of the box. A menu is drawn
over everything and leaves the box in sight: its first line ends in `esc`.
"""

from __future__ import annotations

import re

from mam.adapters.agents.dialog_options import Choices
from mam.adapters.agents.kind import ScreenState
from mam.adapters.agents.unsafe_width import without_strays
from mam.core.activity import IDLE, UNKNOWN, WAITING, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Screen

_FOOT = re.compile(r"( *)╹(▀{8,})")
_BAR = "┃"
# Where the text begins, counted from the bar.
_INDENT = 3
_BUSY = re.compile(r" *(?:[⬝■]{4,}|\[⋯\])")
_AT_REST = re.compile(r"(?:^| )\S+ commands\Z")
_PLACEHOLDER = re.compile(r'Ask anything…(?: ".*)?\Z', re.DOTALL)
_SHELL = "Shell"
_QUEUED = re.compile(r"^ *┃ +QUEUED$", re.MULTILINE)
_ASKS_PERMISSION = re.compile(r"┃ +△ (?:Permission required|Always allow|Reject permission)\b")
_SIDE_BY_SIDE = re.compile(r"^(Allow once|Confirm) {3}(\S.*)", re.MULTILINE)
_ASKS = re.compile(r"┃ .*\benter (?:submit|toggle|confirm)  esc dismiss\b")
_CONFIRMS = re.compile(r"\benter confirm\b")
# The widths of a dialog without its padding, which is 4 in a list and 2 in a question.
_INNER = tuple(width - padding for width in (60, 88, 116) for padding in (8, 4))
_ESC = re.compile(r" {3}esc(?= {3}|\Z)")
# The titles of dialogs that are more than a menu; none of them was ever seen.
_TITLES = (
    ("update", re.compile(r"Update (?:Available|Complete)")),
    ("limit", re.compile(r".*limit reached")),
    ("login", re.compile(r"Connect a provider")),
)
_LIMIT = re.compile(r"limit reached\b")
_RESET = re.compile(r"reset in ([^.\n]+)")


def look(screen: Screen) -> ScreenState:
    """Return the state, the dialog and the box of a screen."""
    lines = [line.rstrip() for line in screen.text.rstrip().split("\n")]
    menu = _menu(lines)
    if menu is not None:
        return menu
    for number in range(len(lines) - 1, -1, -1):
        if foot := _FOOT.match(lines[number]):
            return _look_at_box(lines, number, foot, screen)
    return _look_at_dialog(lines)


def _menu(lines: list[str]) -> ScreenState | None:
    """Return the dialog that is drawn over the screen, if there is one."""
    for number, line in enumerate(lines[:-1]):
        for esc in _ESC.finditer(line):
            for width in _INNER:
                left = esc.end() - width
                title = line[max(0, left) : esc.start()].strip()
                # Nothing of the conversation shines through: the padding and the line below are blank.
                if (
                    left >= 2
                    and title
                    and not line[left - 2 : left].strip()
                    and line[left] != " "
                    and not lines[number + 1][left - 2 : esc.end()].strip()
                ):
                    inside = "\n".join(one[left : esc.end()] for one in lines[number:])
                    return _named(title, inside)
    return None


def _named(title: str, inside: str) -> ScreenState:
    for name, pattern in _TITLES:
        if pattern.match(title):
            return ScreenState(WAITING, dialog=name, detail=_reset(inside) if name == "limit" else "")
    return ScreenState(WAITING, dialog="menu")


def _reset(text: str) -> str:
    found = _RESET.search(" ".join(text.split()))
    return f"in {found[1]}" if found else ""


def _look_at_box(lines: list[str], bottom: int, foot: re.Match[str], screen: Screen) -> ScreenState:
    left, right = foot.end(1), foot.end(2)
    top = bottom
    while top and lines[top - 1][left : left + 1] == _BAR:
        top -= 1
    rows = [line[left + 1 : right].strip() for line in lines[top:bottom]]
    if not rows or _is_elsewhere(screen, top, bottom):
        return ScreenState()
    if rows[-1] == _SHELL:
        return ScreenState(UNKNOWN, box="draft", detail="shell mode")
    below = lines[bottom + 1][:right].rstrip() if bottom + 1 < len(lines) else ""
    # What is left of a text that it took may stand there, and nothing of it can be seen.
    text = without_strays("\n".join(rows[:-1])).strip()
    is_empty = not text or (_PLACEHOLDER.match(text) is not None and screen.cursor_x in (0, left + _INDENT))
    box = "empty" if is_empty else "draft"
    if _BUSY.match(below):
        if _LIMIT.search(below):
            return ScreenState(WAITING, dialog="limit", detail=_reset(below))
        above = "\n".join(line[:right].rstrip() for line in lines[:top])
        return ScreenState(WORKING, box=box, detail="messages are queued" if _QUEUED.search(above) else "")
    return ScreenState(IDLE if _AT_REST.search(below) else UNKNOWN, box=box)


def _is_elsewhere(screen: Screen, top: int, bottom: int) -> bool:
    """Tell whether the cursor is known and not in the box: something else takes the keys."""
    return bool(screen.cursor_x or screen.cursor_y) and not top <= screen.cursor_y < bottom


def read_permission(text: str) -> Choices | None:
    """Return the options of a permission; None where none is asked for."""
    words = dialog_words(text)
    if not words.startswith(("△ Permission required", "△ Always allow", "△ Reject permission")):
        return None
    options = _SIDE_BY_SIDE.search(words)
    labels = [options[1], *re.split(r" {3,}", options[2])] if options else []
    return Choices(labels, None, words, is_numbered=False)


def dialog_words(text: str) -> str:
    """Return what stands beside the bar at the bottom, without what stands beside the conversation."""
    block = _last_block([line.rstrip() for line in text.rstrip().split("\n")])
    words = [re.split(r" {6,}", line.partition(_BAR)[2])[0].strip() for line in block]
    return "\n".join(word for word in words if word)


def _last_block(lines: list[str]) -> list[str]:
    """Return the lines with a bar at the bottom of the screen."""
    first = len(lines)
    while first and lines[first - 1].lstrip().startswith(_BAR):
        first -= 1
    return lines[first:]


def _look_at_dialog(lines: list[str]) -> ScreenState:
    text = "\n".join(_last_block(lines))
    if _ASKS_PERMISSION.search(text) and _CONFIRMS.search(text):
        return ScreenState(WAITING, dialog="permission")
    return ScreenState(WAITING, dialog="question") if _ASKS.search(text) else ScreenState()
