"""Reading the screen of Hermes in its classic interface.

Below the conversation are the status bar, a rule, the prompt and (from 64 columns on) another rule. A sign
before the arrow of the prompt shows the activity: none if idle, `⚕` in a turn, `⚠` and `?` in dialogs. The
model picker hides the status bar and shows the arrow without a sign: so without the bar there is no box.
"""

from __future__ import annotations

import re

from mam.adapters.agents.kind import ScreenState
from mam.core.activity import IDLE, WAITING, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.adapters.agents.kind import Screen

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
_HINT = "msg="
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
        return _read_box(lines[top + 1 : end], "".join(lines[end + 1 :]).strip(), "\n".join(above[-8:]))
    return ScreenState(WAITING, dialog="menu") if _ends_in_menu(above) else ScreenState()


def _read_box(inside: list[str], below: str, above: str) -> ScreenState:
    if not inside:
        return ScreenState()
    if rest := _IDLE_PROMPT.match(inside[0]):
        text = "".join([inside[0][rest.end() :], *inside[1:]]).strip()
        if text:
            return ScreenState(IDLE, box="draft")
        # A crashed Hermes leaves its input box on the screen, and tmux writes a line below it.
        return ScreenState() if below else ScreenState(IDLE, box="empty")
    sign = _SIGN.match(inside[0])
    if sign is None:
        return ScreenState()
    text = "".join([inside[0][sign.end() :], *inside[1:]]).strip()
    if sign[1] == _TURN:
        return ScreenState(WORKING, box="empty" if not text or text.startswith(_HINT) else "draft")
    if sign[1] in _COMMAND:
        return ScreenState(WORKING, detail="a command runs")
    dialog = _DIALOGS.get(sign[1])
    if dialog == "permission" and _CONFIRM.search(above):
        dialog = "confirm"
    return ScreenState(WAITING, dialog=dialog) if dialog else ScreenState()


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
