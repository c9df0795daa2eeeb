"""Reading the screen of Claude Code.

The input box is `❯` with a no-break space, between two rules. An earlier prompt in the conversation has `❯`
with a plain space. The pointer `❯` of a dialog is indented, or a number follows it. A screen with neither an
input box nor a dialog shows no state.
"""

from __future__ import annotations

import re

from mam.adapters.agents.input_box import find_box, read_contents
from mam.adapters.agents.kind import ScreenState
from mam.core.activity import IDLE, SHELL_MODE, UNKNOWN, WAITING, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.input_box import Box
    from mam.adapters.agents.kind import Screen

YES, NO = "on yes", "on no"
PROMPT, SHELL_PROMPT = "❯\xa0", "!\xa0"
_BUSY_BELOW = "esc to interrupt"
# After a big paste this text replaces `esc to interrupt`, so the agent may be working.
_HIDES_BUSY = "paste again to expand"
_SPINNER = re.compile(r"^\S \S.*…(?: \(|$)|· Retrying in \d+s", re.MULTILINE)
_TURN_OVER = re.compile(r"^✻ .* · done \d|^\s+⎿ +Interrupted · ", re.MULTILINE)
_QUEUED = "Press up to edit queued messages"
_SUGGESTION = rf'Try ".*"|{_QUEUED}'
_NOT_LOGGED_IN = re.compile(r"Not logged in · Please run /login|Please run /login · API Error")

_POINTER = re.compile(r"^ *❯ +\S", re.MULTILINE)
_FOOTER = re.compile(r"\b(?:Esc|Enter) to \w+")
_START = "Enter to confirm · Esc to cancel"
# The trust dialog opens with the pointer on No, and Yes is one line below. An older version has numbers and
# the opposite order: mam takes that one for a menu.
_TRUST = re.compile(r"^ *(?:❯ No, exit\n *|No, exit\n *(❯) )Yes, I trust this folder$", re.MULTILINE)
_AT_START = (
    ("api-key", re.compile(r"Do you want to use this API key\?")),
    ("bypass", re.compile(r"running in Bypass Permissions mode")),
    ("login", re.compile(r"Select login method|Log ?in with")),
)
# The question comes first, because its text may look like another dialog. Login and limit were never seen.
_DIALOGS = (
    ("question", re.compile(r"\n *Enter to select · .*\Z")),
    ("permission", re.compile(r"^ *Do you want to \S.*\?|Would you like to proceed\?", re.MULTILINE)),
    ("permission", re.compile(r"Auto mode can.t check actions")),
    ("login", re.compile(r"Select login method|Paste code here")),
    ("limit", re.compile(r"limit reached|hit your .{0,20}limit")),
)
_RESET = re.compile(r"resets? (?:at )?([^\n·]+)")


def read_screen(screen: Screen) -> ScreenState:
    """Return the activity, the dialog and the input box of a screen."""
    # A plain rstrip() would remove the no-break space of an empty input box.
    lines = [line.rstrip(" ") for line in screen.text.rstrip(" \n").split("\n")]
    box = find_box(lines, PROMPT)
    if box is not None:
        # A short conversation is at the top of the screen, with empty lines between it and the input box.
        close = find_box([line for line in lines if line], PROMPT)
        return _read_box(box, close.above if close else box.above, screen)
    if find_box(lines, SHELL_PROMPT) is not None:
        return ScreenState(UNKNOWN, box="draft", detail=SHELL_MODE)
    return _read_dialog("\n".join(lines[-40:]))


def _read_box(box: Box, above: str, screen: Screen) -> ScreenState:
    if _BUSY_BELOW in box.below or _SPINNER.search(above):
        state = WORKING
    elif _HIDES_BUSY in box.below and not _TURN_OVER.search(above.rpartition("\n❯ ")[2]):
        state = UNKNOWN
    else:
        state = IDLE
    contents = read_contents(screen, box.top, box.bottom, len(PROMPT), known=_SUGGESTION)
    is_queued = contents.has_suggestion and box.inside == _QUEUED
    detail = "messages are queued" if is_queued else "not logged in" if _NOT_LOGGED_IN.search(above) else ""
    return ScreenState(state, contents=contents, detail=detail)


def _read_dialog(tail: str) -> ScreenState:
    last = tail.rpartition("\n")[2].strip()
    if not _FOOTER.search(last) or not _POINTER.search(tail):
        return ScreenState()
    if last == _START and (trust := _TRUST.search(tail)):
        return ScreenState(WAITING, dialog="trust", detail=YES if trust[1] else NO)
    for name, pattern in _AT_START if last == _START else _DIALOGS:
        if pattern.search(tail):
            reset = _RESET.search(tail) if name == "limit" else None
            return ScreenState(WAITING, dialog=name, detail=reset[1].strip() if reset else "")
    return ScreenState(WAITING, dialog="menu")
