"""A message to a session: its states, when it may be typed, and how it is carried. Pure."""

from __future__ import annotations

import re

from mam.core.activity import IDLE, SHELL_MODE, WORKING
from mam.core.errors import InvalidPrompt, Usage
from mam.core.liveness_values import Liveness
from mam.core.safe_text import for_paste, one_line
from mam.core.string_enum import StrEnum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class MessageState(StrEnum):
    """The state of a message."""

    SUBMITTED = "submitted"
    QUEUED = "queued"
    HELD = "held"
    TYPING = "typing"
    UNCONFIRMED = "unconfirmed"
    FAILED = "failed"
    # Kept, and not typed before a person releases it.
    PARKED = "parked"


DELIVERED = (MessageState.SUBMITTED, MessageState.QUEUED)
ENDED = (*DELIVERED, MessageState.UNCONFIRMED, MessageState.FAILED)
# Nothing happens to a message in one of these states by itself.
AT_REST = (*ENDED, MessageState.PARKED)
EXIT_CODES = {
    MessageState.SUBMITTED: 0,
    MessageState.QUEUED: 0,
    MessageState.HELD: 4,
    MessageState.TYPING: 4,
    MessageState.UNCONFIRMED: 3,
    MessageState.FAILED: 2,
    MessageState.PARKED: 4,
}
READY, WHEN_IDLE = "ready", "idle"
INLINE, FILE = "inline", "file"
# The folder of messages in files, in the workspace of the session.
MAIL = ".mam-mail"
LARGEST = 1024 * 1024
SHORTER = "write a short text that names a file which the agent can read"
# Two sessions message each other in a loop if a text repeats within SAME_SECONDS, or if one session sends
# the other MOST_OF_A_PAIR messages within PAIR_SECONDS.
SAME_SECONDS, PAIR_SECONDS, MOST_OF_A_PAIR = 600.0, 60.0, 20
# A line that an agent could take for mam's header, whatever spaces, quotes or invisible characters it holds.
# Two patterns find it in one pass each. A single pattern would need time quadratic in the length of a text
# that holds only line ends.
_BETWEEN = re.compile(r"[^\w\[\n\u2028\u2029]+")
_HEADER = re.compile(r"(?:^|[\u2028\u2029])\[+mamm_", re.MULTILINE | re.IGNORECASE)
_ID = re.compile(r"m_[A-Za-z0-9-]{1,64}\Z")
_COMMAND = re.compile(r"/\S.*\Z")


class ReasonCode(StrEnum):
    """Why a message is held or failed: code compares this word, and the sentence is for people."""

    NOT_TRIED = "not_tried"
    ABSENT = "absent"
    SCROLLING = "scrolling"
    DIALOG = "dialog"
    ASKING = "asking"
    NO_BOX = "no_box"
    DRAFT = "draft"
    SHELL_MODE = "shell_mode"
    WORKING = "working"
    UNKNOWN_ACTIVITY = "unknown_activity"
    UNTESTED_VERSION = "untested_version"
    OTHER_CONVERSATION = "other_conversation"
    STOPPING = "stopping"
    # Its text may stand in the input box, and mam leaves it to a person.
    LEFT_IN_BOX = "left_in_box"
    # It failed, because its session was started anew.
    STARTED_ANEW = "started_anew"
    # It is parked: it was held before, or a process was typing it.
    PARKED = "parked"
    PARKED_WHILE_TYPED = "parked_while_typed"
    # It is unconfirmed: the state was restored, and what became of the message since the copy is not known.
    RESTORED = "restored"
    # It is unconfirmed: the agent had it in its queue, and ended.
    ENDED_IN_QUEUE = "ended_in_queue"


class Reason(str):
    """The sentence that says why a message has its state, and its code if code has to recognise it."""

    __slots__ = ("code",)

    code: str | None

    def __new__(cls, text: str, code: str | None = None) -> Reason:
        """Join a sentence and its code."""
        reason = super().__new__(cls, text)
        reason.code = code
        return reason


_DIALOG_CODES = (ReasonCode.DIALOG, ReasonCode.ASKING)
NOT_TRIED = Reason("it waits its turn", ReasonCode.NOT_TRIED)
ASKING = Reason("the agent reports that it is waiting for a person", ReasonCode.ASKING)
RESTORED = Reason(
    "the state was restored, and nothing tells whether the agent has it; look: mam read", ReasonCode.RESTORED
)
ENDED_IN_QUEUE = Reason(
    "the agent ended with this text in its queue, and never got it; send it again", ReasonCode.ENDED_IN_QUEUE
)
ENDED_AFTER_QUEUE = Reason(
    "the agent ended, and nothing tells whether it took this text from its queue; look: mam read",
    ReasonCode.ENDED_IN_QUEUE,
)
STOPPING = Reason("it is being stopped", ReasonCode.STOPPING)


def check_text(text: str, noun: str = "message", limit: int = LARGEST) -> str:
    """Return the text of a message or prompt; raise InvalidPrompt for one that no agent can be given."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidPrompt(f"the {noun} is not valid Unicode", hint="write it in UTF-8") from None
    if not text.strip():
        raise InvalidPrompt(f"the {noun} is empty", hint="write what the agent should do")
    if size > limit:
        raise InvalidPrompt(f"a {noun} is at most 1 MB long", hint=SHORTER)
    if "\0" in text:
        raise InvalidPrompt(f"the {noun} contains a NUL character", hint="remove it from the text")
    return text


def parse_id(text: str) -> str:
    """Return the id of a message; it becomes the name of a file and a part of the header."""
    if not _ID.match(text):
        raise Usage(
            f"{one_line(text, 40)!r} is not the id of a message",
            hint="m_ and letters, digits or -: m_1f00ab42",
        )
    return text


def parse_command(text: str) -> str:
    """Return a command of an agent program; other text would lack the header or reach the program's shell."""
    if not _COMMAND.match(text) or for_paste(text) != text:
        raise InvalidPrompt(
            "a command is one line that begins with /", hint="leave out --command to send a text"
        )
    return text


def behind_reason(message_id: str, reason: Reason) -> Reason:
    """Return why a message waits: an earlier message is held."""
    return Reason(f"{message_id} comes before it, and is held: {reason}", reason.code)


def absence_reason(absence: str) -> Reason:
    """Return why mam cannot type to a session that is not alive."""
    text = {
        Liveness.UNKNOWN: "tmux does not answer",
        Liveness.LOOSE: "its pane is gone",
        "replaced": "another process is in its pane",
        "shell": "a shell is in its pane, and not the agent",
    }.get(absence, "it has ended")
    return Reason(text, ReasonCode.ABSENT)


def ended_reason(name: str) -> Reason:
    """Return why a message waits for a session that has ended, and what ends the wait."""
    text = f"it has ended; the message arrives when it is resumed: mam resume {name}"
    return Reason(text, ReasonCode.ABSENT)


def scrolling_reason(pane: str | None) -> Reason:
    """Return why mam does not type into a pane that shows its history."""
    return Reason(f"somebody is scrolling or searching in pane {pane}", ReasonCode.SCROLLING)


def untested_version(kind: str) -> Reason:
    """Return why mam does not type to an untested version of an agent program."""
    return Reason(
        f"mam was not tested with this version of {kind}, and only its screen shows that it takes input",
        ReasonCode.UNTESTED_VERSION,
    )


def other_conversation(expected: str, current: str | None) -> Reason | None:
    """Return why a message for one conversation is not typed into the open one; None if they are the same."""
    if expected == current:
        return None
    text = f"its conversation is {current or 'not known'}, not {expected}"
    return Reason(text, ReasonCode.OTHER_CONVERSATION)


def is_about_dialog(code: str | None) -> bool:
    """Tell whether a message with this code is held because the agent asks a person."""
    return code in _DIALOG_CODES


def reason_to_hold(
    *, state: str, dialog: str | None, box: str | None, queues: bool, when: str, detail: str = ""
) -> Reason | None:
    """Return why a message cannot be typed now; None if the screen shows an empty input box."""
    if dialog:
        return Reason(f"its {dialog} dialog is open", ReasonCode.DIALOG)
    if box is None:
        return Reason("its input box is not visible", ReasonCode.NO_BOX)
    if box != "empty" and detail == SHELL_MODE:
        return Reason(f"its {SHELL_MODE} is on", ReasonCode.SHELL_MODE)
    if box != "empty":
        return Reason("a draft is in its box", ReasonCode.DRAFT)
    if state == IDLE or (when != WHEN_IDLE and queues):
        return None
    if state == WORKING:
        return Reason("it is working", ReasonCode.WORKING)
    return Reason("its activity is unknown", ReasonCode.UNKNOWN_ACTIVITY)


def has_own_proof(since: int, others: Sequence[int], count: Callable[[int], int | None]) -> bool:
    """Tell whether a transcript shows a text for one more message, so that no proof serves two messages.

    `since` is how far the transcript reached when the message was typed, and `others` the same for messages
    with this text that are proven already. `count` returns how often the transcript beyond a point has the
    text. A message is shown beyond its own point, so beyond each point there must be enough for all.
    """
    starts = [since, *others]
    for start in {start for start in starts if start <= since}:
        shown = count(start)
        if shown is None or shown < sum(other >= start for other in starts):
            return False
    return True


def may_have_unrecorded(
    *,
    activity: str,
    box: str | None,
    may_be_in_box: bool,
    queues: bool,
    records_queue: bool,
    asks: bool = False,
    asks_as_before: bool = False,
) -> bool:
    """Tell whether a live agent may have a text that its own record does not show.

    The text may stand in the input box without Enter, or in the queue of an agent that is not idle. What mam
    types only while the agent is idle (`queues` is False), the record shows at once: it is in no queue, and
    not below a dialog (`asks`). While one dialog is open (`asks_as_before`), nothing is typed.
    """
    if asks and (asks_as_before or not queues):
        return False
    if box is None or may_be_in_box:
        return True
    return activity != IDLE and queues and not records_queue


def state_after_restore(
    shown: int | None, taken: int | None, *, may_be_unrecorded: bool = False
) -> MessageState:
    """Return the state of a message that was held when the copy was made which is restored now.

    `shown` is how often the agent's own record has its text; None where the record is not readable. `taken`
    is how often the agent took it since the message was recorded, without what other messages explain; None
    where nobody can tell. With `may_be_unrecorded` the agent may have a text that its record does not show.
    """
    if shown is None or (shown > 0 and taken is None):
        return MessageState.UNCONFIRMED
    if shown > 0 and taken is not None and taken > 0:
        return MessageState.SUBMITTED
    return MessageState.UNCONFIRMED if may_be_unrecorded else MessageState.HELD


def header(message_id: str, sender: str, role: str | None) -> str:
    """Return the line that tells an agent who sent the message."""
    author = f"{sender} ({role})" if role else sender
    return f"[mam {message_id} from {one_line(author, 200)}]"


def is_plain(text: str, longest: int) -> bool:
    """Tell whether a text can be pasted unchanged and forges no header."""
    return len(text) <= longest and for_paste(text) == text and not _HEADER.search(_BETWEEN.sub("", text))


def added_spaces(typed: str, text: str) -> str | None:
    """Return which spaces keep a typed text from being a command of the program; None if there are none."""
    head, _, tail = typed.partition(text)
    places = [*(["before it"] if head else []), *(["after it"] if tail else [])]
    return f"a space {' and '.join(places)}" if places else None


def file_of(message_id: str) -> str:
    """Return the path, from the workspace, of the file that holds a message."""
    return f"{MAIL}/{message_id}.md"


def pointer(path: str, message_id: str) -> str:
    """Return the line that is typed if the message itself is in a file."""
    return f"Read the file {path}: it holds message {message_id} for you. Do what it says."
