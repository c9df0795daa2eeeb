"""Reading the screen of Hermes in its classic interface.

Below the conversation are the status bar, a rule, the prompt and (from 64 columns on) another rule. A sign
before the arrow of the prompt shows the activity: none if idle, `⚕` in a turn, `⚠` and `?` in dialogs. The
model picker hides the status bar and shows the arrow without a sign: so without the bar there is no box.
"""

from __future__ import annotations

import re

from mam.adapters.agents.input_box import MOST_ROWS, read_contents
from mam.adapters.agents.kind import ScreenState
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.terminal_cells import NORMAL, columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.adapters.agents.box_contents import BoxContents
    from mam.adapters.agents.kind import Screen
    from mam.core.terminal_cells import Style

_RULE = re.compile(r"─{20,}\Z")
_WIDE = 64
_BAR = re.compile(r" ⚕ \S.* (?:│|·) ")
# In an idle Hermes the arrow is alone, or follows the name of the profile.
_IDLE_PROMPT = re.compile(r"(?:[a-z0-9][a-z0-9_-]{0,63} )?❯(?: |\Z)")
# Below 64 columns Hermes shows the sign instead of the arrow.
_SIGN = re.compile(r"(\S+)(?: ❯)?(?: |\Z)")
_TURN = "⚕"
_COMMAND = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_DIALOGS = {"⚠": "permission", "?": "question", "✎": "question", "🔐": "password", "🔑": "secret"}
# In a turn an empty input box shows this.
_SUGGESTION = r"msg=.*"
# The colour in which Hermes completes a typed text, in a terminal of 256, of all, or of 16 colours.
_COMPLETION = (241, "#666666", 8)
_PANEL_END = re.compile(r"╰─+╯\Z")
_CONFIRM = re.compile(r"^ +type 1/2/3, or ↑/↓ to select, Enter to confirm", re.MULTILINE)
_SETUP = re.compile(r"^Run setup now\? \[Y/n\]\Z", re.MULTILINE)


def read_screen(screen: Screen) -> ScreenState:
    """Return the activity, the dialog and the input box of a screen."""
    lines = [line.rstrip() for line in screen.text.rstrip().split("\n")]
    rules = [at for at, line in enumerate(lines) if _RULE.match(line)]
    if not rules:
        return _read_without_box(lines)
    top, end = rules[-1], len(lines)
    if len(lines[top]) >= _WIDE:
        if len(rules) < 2 or len(lines[rules[-2]]) != len(lines[top]):
            return ScreenState()
        top, end = rules[-2], top
    above = lines[:top]
    if above and _BAR.match(above[-1]):
        return _read_box(screen, lines, top + 1, end)
    return ScreenState(WAITING, dialog="menu") if _ends_in_menu(above) else ScreenState()


def _read_box(screen: Screen, lines: Sequence[str], first: int, end: int) -> ScreenState:
    """Read the input box whose rows go from `first` to the row before `end`."""
    if first >= end:
        return ScreenState()
    if rest := _IDLE_PROMPT.match(lines[first]):
        contents = _read_contents(screen, first, end, columns(rest[0].rstrip()) + 1)
        # A crashed Hermes leaves its input box on the screen, and tmux writes a line below it.
        is_crashed = contents.box == "empty" and any(lines[end + 1 :])
        return ScreenState() if is_crashed else ScreenState(IDLE, contents=contents)
    sign = _SIGN.match(lines[first])
    if sign is None:
        return ScreenState()
    if sign[1] == _TURN:
        left = columns(sign[0].rstrip()) + 1
        return ScreenState(WORKING, contents=_read_contents(screen, first, end, left, in_turn=True))
    if sign[1] in _COMMAND:
        return ScreenState(WORKING, detail="a command runs")
    dialog = _DIALOGS.get(sign[1])
    if dialog == "permission" and _CONFIRM.search("\n".join(lines[max(0, first - 9) : first - 1])):
        dialog = "confirm"
    if dialog is None and end - first >= MOST_ROWS:
        # A long draft pushes the prompt out of the input box, and the sign of the activity with it.
        return ScreenState(contents=_read_contents(screen, first, end, 0))
    return ScreenState(WAITING, dialog=dialog) if dialog else ScreenState()


def _read_contents(screen: Screen, first: int, end: int, left: int, *, in_turn: bool = False) -> BoxContents:
    """Return what is in the input box. In a turn its suggestion has the style of the sign before it.

    What completes a typed text has a colour of its own, and belongs to no draft. Neither does the list of
    commands: in a narrow terminal it is just below the text, on another background.
    """
    prompt = screen.cells(first)[:1] if left else []
    sign = prompt[0].style if prompt else NORMAL

    def is_suggested(style: Style) -> bool:
        is_of_sign = in_turn and style == sign and style.foreground is not None
        return is_of_sign or style.foreground in _COMPLETION or style.background != sign.background

    return read_contents(screen, first, end, left, below_left=0, is_suggested=is_suggested, known=_SUGGESTION)


def _read_without_box(lines: Sequence[str]) -> ScreenState:
    if _SETUP.search("\n".join(lines[-3:])):
        return ScreenState(WAITING, dialog="login", detail="no provider is configured")
    return ScreenState()


def _ends_in_menu(above: Sequence[str]) -> bool:
    """Tell whether the text above the input box ends with a panel that has a pointer."""
    shown = [line for line in above if line]
    if not shown or not _PANEL_END.match(shown[-1]):
        return False
    for line in reversed(shown[:-1]):
        if line.startswith("│ ❯ "):
            return True
        if not line.startswith("│"):
            break
    return False
