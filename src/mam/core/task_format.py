"""A task: work for a role. One member with that role claims the oldest task and does it. Pure."""

from __future__ import annotations

from mam.core.errors import InvalidPrompt, Usage
from mam.core.message_rules import SHORTER
from mam.core.names import slug
from mam.core.safe_text import for_screen, one_line

PENDING, CLAIMED, DONE = "pending", "in-progress", "done"
STATUSES = (PENDING, CLAIMED, DONE)
_PREFIX = "TASK-"
_LONGEST = 64 * 1024
LONGEST_RESULT = 1000


def shown(number: int) -> str:
    """Return the name of a task: `TASK-007`."""
    return f"{_PREFIX}{number:03d}"


def parse(text: str) -> int:
    """Return the number in the name of a task: `TASK-007`, `task-7` or `7`."""
    digits = text.upper().removeprefix(_PREFIX)
    if not digits.isascii() or not digits.isdigit() or len(digits) > 9 or int(digits) < 1:
        raise Usage(f"{one_line(text, 40)!r} is not a task", hint="tasks are called TASK-001; mam task list")
    return int(digits)


def parse_role(text: str | None) -> str:
    """Return the role of a task in the spelling by which roles are compared."""
    role = slug(text or "")
    if not role or len(role) > 40:
        raise Usage("name a role", hint="--role dev: a short word of letters and digits")
    return role


def parse_text(text: str) -> str:
    """Return the text of a task as it is stored."""
    cleaned = for_screen(text.replace("\r\n", "\n")).strip()
    if not cleaned:
        raise InvalidPrompt("the task is empty", hint="write what its role should do")
    if len(cleaned.encode()) > _LONGEST:
        raise InvalidPrompt("a task is at most 64 KB long", hint=SHORTER)
    return cleaned


def parse_result(text: str | None) -> str:
    """Return a result as one line."""
    return one_line((text or "").strip(), LONGEST_RESULT) or "done"
