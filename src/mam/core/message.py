"""A message to a session: when it may be typed, how it is carried, what became of it. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from mam.core.activity import IDLE, WORKING
from mam.core.errors import InvalidPrompt, Usage
from mam.core.liveness import Liveness
from mam.core.safe_text import for_paste, one_line


class MessageState(StrEnum):
    """What became of a message so far."""

    SUBMITTED = "submitted"
    QUEUED = "queued"
    HELD = "held"
    TYPING = "typing"
    UNCONFIRMED = "unconfirmed"
    FAILED = "failed"


DELIVERED = (MessageState.SUBMITTED, MessageState.QUEUED)
ENDED = (*DELIVERED, MessageState.UNCONFIRMED, MessageState.FAILED)
EXIT_CODES = {
    MessageState.SUBMITTED: 0,
    MessageState.QUEUED: 0,
    MessageState.HELD: 4,
    MessageState.TYPING: 4,
    MessageState.UNCONFIRMED: 3,
    MessageState.FAILED: 2,
}
READY, WHEN_IDLE = "ready", "idle"
INLINE, FILE = "inline", "file"
LARGEST = 1024 * 1024
# The same words from one session to another within this time are a loop, and so are so many in a minute.
SAME_SECONDS, PAIR_SECONDS, MOST_OF_A_PAIR = 600.0, 60.0, 20
# What an agent could take for our line, whatever spaces, quotes or unseen characters are in it. In two steps,
# each of one pass: a text of nothing but line ends would cost a single pattern the square of its length.
_BETWEEN = re.compile(r"[^\w\[\n\u2028\u2029]+")
_HEADER = re.compile(r"(?:^|[\u2028\u2029])\[+mamm_", re.MULTILINE | re.IGNORECASE)
_ID = re.compile(r"m_[A-Za-z0-9-]{1,64}\Z")
_COMMAND = re.compile(r"/\S.*\Z")


_DIALOG_OPEN = " dialog is open"
WAITS = "it waits for a person, as its own word is"
NOT_TRIED = "it waits its turn"
STOPPING = "it is being stopped"


def check_size(prompt: str, room: int = LARGEST) -> None:
    """Refuse a prompt that is longer than this, or that cannot be written down."""
    try:
        size = len(prompt.encode())
    except UnicodeEncodeError:
        raise InvalidPrompt("the prompt is not valid Unicode", hint="use UTF-8") from None
    if size > room:
        raise InvalidPrompt("a prompt is at most 1 MB long", hint="put it into a file and name the file")


def parse_id(text: str) -> str:
    """Return the id of a message; it becomes the name of a file, and stands in the line that signs it."""
    if not _ID.match(text):
        raise Usage(
            f"{one_line(text, 40)!r} is not the id of a message", hint="m_ and letters or digits: m_1f00ab42"
        )
    return text


def parse_command(text: str) -> str:
    """Return a command of a program; other words would go unsigned, or to a shell of the program's."""
    if not _COMMAND.match(text) or for_paste(text) != text:
        raise InvalidPrompt("a command is one line that begins with /", hint="leave out --command for words")
    return text


def behind(message_id: str, reason: str | None) -> str:
    """Return why a message waits that another one comes before."""
    return f"{message_id} comes before it, and is held: {reason}"


def not_there(sight: str) -> str:
    """Return why nothing can be typed into a session that is not alive."""
    return {
        Liveness.UNKNOWN: "tmux does not answer",
        Liveness.LOOSE: "its pane is gone",
        "replaced": "another process is in its pane",
        "shell": "a shell is in its pane, and not the agent",
    }.get(sight, "it has ended")


def untested(kind: str) -> str:
    """Return why a version that nobody tested is not typed into."""
    return f"mam was not tested with this version of {kind}, and only its screen says that it waits"


def other_conversation(expected: str, current: str | None) -> str | None:
    """Return why a message that is meant for one conversation does not go into the one that is open."""
    return None if expected == current else f"its conversation is {current or 'not known'}, not {expected}"


def is_about_dialog(reason: str | None) -> bool:
    """Tell whether it is a dialog that a message waits for."""
    return reason == WAITS or (reason or "").endswith(_DIALOG_OPEN)


def reason_to_hold(
    *, state: str, dialog: str | None, box: str | None, queues: bool, when: str, detail: str = ""
) -> str | None:
    """Return why a message cannot be typed now, or None if it can: only into an empty box that is seen."""
    if dialog:
        return f"its {dialog}{_DIALOG_OPEN}"
    if box is None:
        return "its input box is not seen"
    if box != "empty":
        return f"its {detail} is on" if detail.endswith("mode") else "a draft is in its box"
    if state != IDLE and (when == WHEN_IDLE or not queues):
        return "it is working" if state == WORKING else "nobody can say whether it rests"
    return None


def header(message_id: str, sender: str, role: str | None) -> str:
    """Return the line that tells an agent who writes to it."""
    who = f"{sender} ({role})" if role else sender
    return f"[mam {message_id} from {one_line(who, 200)}]"


def is_plain(text: str, longest: int) -> bool:
    """Tell whether a text can be pasted as it is, and forges no header."""
    return len(text) <= longest and for_paste(text) == text and not _HEADER.search(_BETWEEN.sub("", text))


def added(words: str, text: str) -> str | None:
    """Return what was put around a text so that it arrives as words; None if nothing was."""
    head, _, tail = words.partition(text)
    both = [*(["before it"] if head else []), *(["after it"] if tail else [])]
    return f"a space {' and '.join(both)}" if both else None


def pointer(path: str, message_id: str) -> str:
    """Return the line that is typed where the message itself is in a file."""
    return f"Read the file {path}: it holds message {message_id} for you. Do what it says."
