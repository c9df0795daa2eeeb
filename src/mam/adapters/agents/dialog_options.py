"""Reading the options of an open dialog: agents draw one line per option, with a pointer before one of them.

Examples are `❯ 1. Yes`, `› 1. Yes, proceed (y)`, `● 1. Allow once`, `│ ❯ [1] Approve Once │`, and without
numbers `❯ No, exit`. Descriptions and rules may be between the options.
"""

from __future__ import annotations

import re

from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FRAME = "│┃"
_NUMBERED = re.compile(r"(?P<mark>[❯›●>] ?)? *\[?(?P<number>\d{1,2})[.\]] +(?P<label>\S.*)")
_POINTED = re.compile(r"(?P<indent> *)❯ +(?P<label>\S.*)")
# What ends a dialog at its top: a rule, the top of a frame, or a message of the conversation.
_ABOVE = re.compile(r"\s*(?:[─▔═]{10,}|╭─)|(?:[•◦■✗✔●❯›>⎿✻] )")
_DRAWN = re.compile(r"[─╌▔═╭╮╰╯ ]+\Z")
_MOST_ABOVE = 25
# `allow` means the narrowest consent: never one that is valid for more than this request.
_CONSENT = re.compile(r"(?:yes|allow|approve|trust)\b", re.IGNORECASE)
_WIDER = re.compile(r"\b(?:always|session|permanent|auto|parent|all)\b|don.t ask", re.IGNORECASE)
_REFUSAL = re.compile(r"(?:no|deny|reject|cancel|quit|stop|don.t trust)\b", re.IGNORECASE)
_OWN_WORDS = re.compile(
    r"type (?:something|your own answer)|enter a custom value|other \(type", re.IGNORECASE
)


class Choices:
    """The options of a dialog in order, the one at the pointer (None: not visible), and the dialog's text."""

    __slots__ = ("at", "is_numbered", "labels", "text")

    def __init__(self, labels: Sequence[str], at: int | None, text: str, *, is_numbered: bool) -> None:
        self.labels = tuple(labels)
        self.is_numbered = is_numbered
        self.at = at
        self.text = text

    def consent(self) -> int | None:
        """Return the option that allows this request and no other; None if there is none."""
        return self._first(lambda label: bool(_CONSENT.match(label)) and not _WIDER.search(label))

    def refusal(self) -> int | None:
        """Return the option that refuses."""
        return self._first(lambda label: bool(_REFUSAL.match(label)))

    def free_text(self) -> int | None:
        """Return the option that takes a free text."""
        return self._first(lambda label: bool(_OWN_WORDS.match(label)))

    def find_option(self, answer: str) -> int | None:
        """Return the option with this number or label; the explanation at its end may be left out."""
        name = _normalised(answer)
        number = whole_number(name)
        if number is not None and 0 < number <= len(self.labels):
            return number - 1
        return self._first(
            lambda label: name in (_normalised(label), _normalised(re.split(r" {2,}| \(", label)[0]))
        )

    def _first(self, fits: Callable[[str], bool]) -> int | None:
        return next((number for number, label in enumerate(self.labels) if fits(label)), None)


def read(screen: str) -> Choices | None:
    """Return the options of the dialog at the bottom of a screen; None if there are none."""
    lines = [_without_frame(line) for line in screen.rstrip().split("\n")]
    return _read_numbered(lines) or _read_pointed(lines)


def _without_frame(line: str) -> str:
    """Return a line without the frame around it."""
    line = line.rstrip()
    if line.lstrip()[:1] in tuple(_FRAME):
        line = line.lstrip()[1:].rstrip(f" {_FRAME}")
        return line.removeprefix(" ")
    return line


def _read_numbered(lines: Sequence[str]) -> Choices | None:
    first = next((at for at in reversed(range(len(lines))) if _number(lines[at]) == 1), None)
    if first is None:
        return None
    labels: list[str] = []
    pointed, last = None, first
    for number, line in enumerate(lines[first:], first):
        option = _NUMBERED.match(line.lstrip())
        if option is None or int(option["number"]) != len(labels) + 1:
            continue
        if option["mark"]:
            pointed = len(labels)
        last = number
        labels.append(option["label"].strip())
    return Choices(labels, pointed, _dialog_text(lines, first, last), is_numbered=True)


def _number(line: str) -> int | None:
    option = _NUMBERED.match(line.lstrip())
    return int(option["number"]) if option else None


def _read_pointed(lines: Sequence[str]) -> Choices | None:
    at = next((number for number in reversed(range(len(lines))) if _POINTED.match(lines[number])), None)
    if at is None:
        return None
    option = _POINTED.match(lines[at])
    assert option is not None
    indent = " " * (len(option["indent"]) + 2)

    def is_option(number: int) -> bool:
        line = lines[number]
        return 0 <= number < len(lines) and line.startswith(indent) and line[len(indent) :][:1].strip() != ""

    first, last = at, at
    while first and is_option(first - 1):
        first -= 1
    while last + 1 < len(lines) and is_option(last + 1):
        last += 1
    labels = [lines[number].replace("❯", " ", 1).strip() for number in range(first, last + 1)]
    return Choices(labels, at - first, _dialog_text(lines, first, last), is_numbered=False)


def _dialog_text(lines: Sequence[str], first: int, last: int) -> str:
    """Return the dialog from its first line to its last option, without the pointer.

    The lines below the options are left out: they change with the pointer and with the time.
    """
    top = first
    while top and first - top < _MOST_ABOVE and not _ABOVE.match(lines[top - 1]):
        top -= 1
    shown = [re.sub(r"^\s*[❯›●>] ", "", line).strip(f" {_FRAME}") for line in lines[top : last + 1]]
    return "\n".join(line for line in shown if line and not _DRAWN.match(line))


def _normalised(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()
