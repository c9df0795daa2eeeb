"""Reading the screen of Codex.

The input box is the last line that begins with `›`; below it are an empty line and the status line (`MODEL ·
FOLDER`). The splash before the start shows the input box without a status line. A dialog has a line of keys
instead of the status line. The screen does not show that an answer is streaming, so mam takes a turn for
ended only if it sees the end.
"""

from __future__ import annotations

import re
import time

from mam.adapters.agents.codex import limit_reset_time
from mam.adapters.agents.input_box import read_contents
from mam.adapters.agents.kind import ScreenState
from mam.core.activity import IDLE, SHELL_MODE, UNKNOWN, WAITING, WORKING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mam.adapters.agents.box_contents import BoxContents
    from mam.adapters.agents.kind import Screen

YES, NO = "on yes", "on no"
PROMPT, SHELL_PROMPT = "›", "!"
# The column in which the text of the input box begins.
_TEXT_COLUMN = 2
_SUGGESTION = "Ask Codex to do anything"

_KEYS = re.compile(r"\b(?:press )?(?:enter|esc|tab)\b", re.IGNORECASE)
_HINTS = "  ? for shortcuts"
_NAMES = re.compile(r"  \S")
_STATUS = re.compile(r"  \S.* · ")
# If the user has switched the status line off, the line of hints shows this.
_CONTEXT = re.compile(r"\b\d+% context left\b")
_POINTER = re.compile(r"^ {0,3}[›>] ", re.MULTILINE)
_HEADER = re.compile(r"  >_ OpenAI Codex \(v")

_BUSY = re.compile(r"[•◦] .*\((?:\d+[hms] ?)+ • esc to interrupt\)")
_QUEUED = "• Queued follow-up inputs"
_WORKED = re.compile(r"  Worked for \S.* • \d")
_FAILED = "■ "
_LIMIT = re.compile(r"■ You.ve hit your usage limit")

# Only the options of the last list decide which dialog it is: the text above them may be the agent's.
_TRUST = re.compile(r"^([› ]) 1\. Trust and continue\n[› ] 2\. ", re.MULTILINE)
_QUESTION = re.compile(r"enter to submit (?:answer|all)")
_LOCKED = re.compile(
    r"^  🔒 +This conversation is open in another app(?:.*\n){1,6} *r retry +f fork", re.MULTILINE
)
_LOGIN = re.compile(r"^[› >] 1\. Sign in with ChatGPT", re.MULTILINE)
# This dialog was never seen: Codex offers an update only with a network.
_UPDATE = re.compile(r"^[› ] 1\. Update now", re.MULTILINE)
_PERMISSION = re.compile(r"^[› ] 1\. (?:Yes\b|Allow\b)", re.MULTILINE)
_DIALOGS = (
    ("login", _LOGIN),
    ("update", _UPDATE),
    ("permission", _PERMISSION),
)
_LARGEST_DIALOG = 40


def read_screen(screen: Screen) -> ScreenState:
    """Return the activity, the dialog and the input box of a screen."""
    lines = [line.rstrip() for line in screen.text.rstrip().split("\n")]
    box_lines = _find_box(lines)
    if box_lines is None:
        return _read_dialog(lines)
    top, bottom = box_lines
    if lines[top].startswith(SHELL_PROMPT):
        return ScreenState(UNKNOWN, box="draft", detail=SHELL_MODE)
    contents = read_contents(screen, top, bottom, _TEXT_COLUMN, known=_SUGGESTION)
    return _read_conversation(_blocks(lines[:top]), contents)


def read_title(title: str) -> str:
    """Return the activity by the title: a spinner of braille signs, or a request for a person."""
    if re.match(r"\[ . \] Action Required\b", title):
        return WAITING
    # The title of an idle Codex is only a name, like the title before Codex sets one.
    return WORKING if re.match(r"[\u2800-\u28ff] ", title) else UNKNOWN


def _find_box(lines: Sequence[str]) -> tuple[int, int] | None:
    """Return the first line of the input box and the line after it; None without a status line below it."""
    written = [number for number, line in enumerate(lines) if line][-2:]
    status = next((number for number in written if _is_status(lines, number)), 0)
    if status < 2 or lines[status - 1]:
        return None
    for top in range(status - 2, -1, -1):
        line = lines[top]
        if line[:1] in (PROMPT, SHELL_PROMPT) and line[1:2] in ("", " "):
            return top, status - 1
        if line and not line.startswith("  "):
            return None
    return None


def _is_status(lines: Sequence[str], number: int) -> bool:
    """Tell whether a line is the status line: names with dots between them, or the line above the hints."""
    line = lines[number]
    if line.startswith(_HINTS):
        return bool(_CONTEXT.search(line))
    if _KEYS.match(line.strip()):
        return False
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return bool(_STATUS.match(line)) or bool(_NAMES.match(line) and below.startswith(_HINTS))


def _blocks(lines: Sequence[str]) -> list[list[str]]:
    """Return the paragraphs of the conversation; empty lines separate them."""
    blocks: list[list[str]] = [[]]
    for line in lines:
        if line:
            blocks[-1].append(line)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _read_conversation(blocks: list[list[str]], contents: BoxContents) -> ScreenState:
    prompts = [number for number, block in enumerate(blocks) if block[0].startswith(f"{PROMPT} ")]
    turn = blocks[prompts[-1] :] if prompts else blocks
    if any(_BUSY.match(block[0]) for block in turn):
        return ScreenState(WORKING, contents=contents)
    if any(block[0] == _QUEUED for block in turn):
        return ScreenState(WORKING, contents=contents, detail="messages are queued")
    last = blocks[-1] if blocks else [""]
    if last[0].startswith(_FAILED):
        return _read_failure(" ".join(last), contents)
    is_new = not prompts and any(_HEADER.match(line) for block in blocks for line in block)
    return ScreenState(IDLE if is_new or _WORKED.match(last[-1]) else UNKNOWN, contents=contents)


def _read_failure(message: str, contents: BoxContents) -> ScreenState:
    if not _LIMIT.match(message):
        return ScreenState(IDLE, contents=contents)
    end = limit_reset_time.named_end(message)
    if limit_reset_time.is_on(end, time.time()):
        # No dialog is open, but Codex answers every prompt with this message until the limit ends.
        return ScreenState(WAITING, dialog="limit", contents=contents, detail=end)
    detail = f"a limit was reached, it resets {end}" if end else "a limit was reached"
    return ScreenState(IDLE, contents=contents, detail=detail)


def _read_dialog(lines: Sequence[str]) -> ScreenState:
    tail = "\n".join(lines[-_LARGEST_DIALOG:])
    if _LOCKED.search(tail):
        return ScreenState(WAITING, dialog="locked")
    keys = "\n".join([line for line in lines if line][-2:])
    if not _KEYS.search(keys) or not _POINTER.search(tail):
        return ScreenState()
    if _QUESTION.search(keys):
        return ScreenState(WAITING, dialog="question")
    options = _last_options(lines)
    trust = _TRUST.match(options)
    if trust:
        return ScreenState(WAITING, dialog="trust", detail=YES if trust[1] == PROMPT else NO)
    for name, pattern in _DIALOGS:
        if pattern.match(options):
            return ScreenState(WAITING, dialog=name)
    return ScreenState(WAITING, dialog="menu")


def _last_options(lines: Sequence[str]) -> str:
    """Return the screen from the first option of the last list on."""
    for number in range(len(lines) - 1, -1, -1):
        if re.match(r"[› >] 1\. ", lines[number]):
            return "\n".join(lines[number:])
    return ""
