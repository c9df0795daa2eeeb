"""Reading the screen of Gemini CLI.

The input box is below a rule of full width: a line with the mode, then the prompt (`>`, in YOLO mode `*`, in
shell mode `!`) and the text. Gemini draws the box seconds before it takes input, and the header when
it takes input. A dialog replaces the input box with a frame at the bottom.
"""

from __future__ import annotations

import re

from mam.adapters.agents.input_box import read_contents
from mam.adapters.agents.kind import ScreenState
from mam.core.activity import IDLE, SHELL_MODE, UNKNOWN, WAITING, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.adapters.agents.kind import Screen
    from mam.core.terminal_cells import Colour

YES, NO = "on yes", "on no"
_TITLES = {"✦  ": WORKING, "⏲  ": WORKING, "✋  ": WAITING}
_RULE = re.compile(r"─{10,}\Z")
_PROMPT = re.compile(r" ([>*!])(?: .*)?\Z")
# In a terminal with true colour the input box has an upper and a lower edge of half blocks.
_EDGE = re.compile(r"[▄▀]*\Z")
_TO_PROMPT = 4
# The column in which the text of the input box begins.
_TEXT_COLUMN = 3
# Only the status row has a spinner after exactly one space; answers are indented by two.
_SPINNER = re.compile(r" [\u2801-\u28ff] \S")
_STATUS_ROWS = 4
_SUGGESTION = r"Type your message or @path/to/file|Press 'Esc' for NORMAL mode\."
_QUEUED = "  Queued (press ↑ to edit):"
# What may be above the input box before Gemini takes input: warnings, and the status row.
_BEFORE_START = re.compile(r"⚠|   | [\u2801-\u28ff] ")
_HINT = re.compile(r"\s+\? for shortcuts\Z")

_TOP, _BOTTOM = re.compile(r"( ?)╭─+╮\Z"), re.compile(r"( ?)╰─+╯\Z")
_BELOW_FRAME = 2
_QUESTION = re.compile(r"Answer Questions\b")
# Only the options and the keys decide which dialog it is: the text above them may be the model's.
_TRUST = re.compile(
    r"^(● )?1\. Trust folder\b.*\n(?:● )?2\. Trust parent folder\b.*\n(?:● )?3\. Don't trust$", re.MULTILINE
)
_LIMIT = re.compile(r"^(?:Usage limit reached for|We are currently experiencing high demand)\b", re.MULTILINE)
_RESET = re.compile(r"^Access resets at (.+?)\.?$", re.MULTILINE)
_STOP = re.compile(r"^(?:● )?\d\. Stop\b", re.MULTILINE)
_DIALOGS = (
    ("login", re.compile(r"^(?:● )?1\. (?:Sign in with Google|Verify your account)$", re.MULTILINE)),
    ("login", re.compile(r"Waiting for authentication\.\.\. \(Press Esc|^Press R to restart, or Esc to")),
    ("api-key", re.compile(r"^\(Press Enter to submit, .*Ctrl\+C to clear stored key\)\Z", re.MULTILINE)),
    ("permission", re.compile(r"^(?:● )?\d\. (?:Allow once|No, suggest changes)\b", re.MULTILINE)),
    ("permission", re.compile(r"^(?:● )?1\. Yes\b.*\n(?:● )?(?:2\. No$|\d\. Yes\b)", re.MULTILINE)),
)
_MENU = re.compile(r"● |\bEsc to (?:close|cancel|exit)|\((?:Press|Use) ", re.I)


def read_screen(screen: Screen) -> ScreenState:
    """Return the activity, the dialog and the input box of a screen."""
    lines = [line.rstrip() for line in screen.text.rstrip().split("\n")]
    box_parts = _find_box(lines)
    if box_parts is None:
        return _read_frame(lines)
    top, prompt_row, end, mark = box_parts
    end = _end_beyond_empty_lines(screen, lines, prompt_row, end)
    if not _has_started(lines[:top]):
        return ScreenState()
    if mark == "!":
        return ScreenState(UNKNOWN, box="draft", detail=SHELL_MODE)
    state = WORKING if any(_SPINNER.match(line) for line in lines[max(0, top - _STATUS_ROWS) : top]) else IDLE
    muted = _muted_colour(screen, top + 1)
    contents = read_contents(
        screen,
        prompt_row,
        end,
        _TEXT_COLUMN,
        is_suggested=lambda style: muted is not None and style.foreground == muted and not style.attributes,
        known=_SUGGESTION,
    )
    return ScreenState(
        state,
        contents=contents,
        detail="messages are queued" if _QUEUED in lines[:top] else "",
        is_on_new_line=contents.box == "draft" and _is_on_new_line(screen, lines, prompt_row),
    )


def read_title(title: str) -> str:
    """Return the activity by the title; `Ready` shows none, because dialogs and menus have it as well."""
    return (
        {"✦": WORKING, "⏲": WORKING, "✋": WAITING}.get(title[:1], UNKNOWN) if title[1:3] == "  " else UNKNOWN
    )


def _find_box(lines: Sequence[str]) -> tuple[int, int, int, str] | None:
    """Return the row of the rule, the first row of the text and the row after it, and the prompt's sign."""
    top = next((at for at in reversed(range(len(lines))) if _RULE.match(lines[at])), None)
    if top is None or any(_BOTTOM.match(line) for line in lines[top:]):
        return None
    for at in range(top + 1, min(top + 1 + _TO_PROMPT, len(lines))):
        prompt = _PROMPT.match(lines[at])
        if prompt and _EDGE.match(lines[at - 1]) and at > top + 1:
            below = range(at + 1, len(lines))
            return top, at, next((row for row in below if _EDGE.match(lines[row])), len(lines)), prompt[1]
    return None


def _end_beyond_empty_lines(screen: Screen, lines: Sequence[str], prompt_row: int, end: int) -> int:
    """Return the row after the text: empty lines above the cursor are a part of it."""
    inside = lines[prompt_row + 1 : screen.cursor_y + 1]
    if screen.cursor_y < end or any(line and not line.startswith(" " * _TEXT_COLUMN) for line in inside):
        return end
    return next((row for row in range(screen.cursor_y + 1, len(lines)) if _EDGE.match(lines[row])), end)


def _muted_colour(screen: Screen, mode_row: int) -> Colour:
    """Return the colour of the key at the end of the row of the mode: suggestions have it in every theme."""
    written = [cell for cell in screen.cells(mode_row) if not cell.is_blank]
    return written[-1].style.foreground if written else None


def _is_on_new_line(screen: Screen, lines: Sequence[str], prompt_row: int) -> bool:
    """Tell whether the cursor is at the start of an empty last line, just below a line with text."""
    row = screen.cursor_y
    return (
        screen.cursor_x == _TEXT_COLUMN
        and prompt_row < row < len(lines) - 1
        and not lines[row]
        and _EDGE.match(lines[row + 1]) is not None
        and not _EDGE.match(lines[row - 1])
    )


def _has_started(above: Sequence[str]) -> bool:
    """Tell whether the lines above the input box show the header, or the conversation after it."""
    return any(_HINT.sub("", line) and not _BEFORE_START.match(line) for line in above)


def _read_frame(lines: Sequence[str]) -> ScreenState:
    inside = _last_frame(lines)
    if inside is None:
        return ScreenState()
    text = "\n".join(inside)
    if trust := _TRUST.search(text):
        return ScreenState(WAITING, dialog="trust", detail=YES if trust[1] else NO)
    if _LIMIT.search(text) and _STOP.search(text):
        reset = _RESET.search(text)
        return ScreenState(WAITING, dialog="limit", detail=reset[1] if reset else "")
    if inside and _QUESTION.match(inside[0]):
        return ScreenState(WAITING, dialog="question")
    for name, pattern in _DIALOGS:
        if pattern.search(text):
            return ScreenState(WAITING, dialog=name)
    return ScreenState(WAITING, dialog="menu") if _MENU.search(text) else ScreenState()


def _last_frame(lines: Sequence[str]) -> list[str] | None:
    """Return the text in the frame at the bottom, without empty lines; None if there is no frame."""
    bottom = next((at for at in reversed(range(len(lines))) if _BOTTOM.match(lines[at])), None)
    if bottom is None or len([line for line in lines[bottom + 1 :] if line]) > _BELOW_FRAME:
        return None
    edge = _BOTTOM.match(lines[bottom])
    indent = edge[1] if edge else ""
    # The top of a long frame is above the screen.
    top = next((at for at in reversed(range(bottom)) if _is_top(lines[at], indent)), -1)
    inside = [line[len(indent) :].strip("│").strip() for line in lines[top + 1 : bottom]]
    return [line for line in inside if line]


def _is_top(line: str, indent: str) -> bool:
    top = _TOP.match(line)
    return top is not None and top[1] == indent
