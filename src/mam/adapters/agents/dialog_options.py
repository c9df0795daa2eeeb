"""Reading the options of an open dialog, as every kind draws them: one line each, one of them pointed at.

`❯ 1. Yes`, `› 1. Yes, proceed (y)`, `● 1. Allow once`, `│ ❯ [1] Approve Once │`, and without numbers
`❯ No, exit`. Descriptions and rules may stand between them.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FRAME = "│┃"
_NUMBERED = re.compile(r"(?P<mark>[❯›●>] ?)? *\[?(?P<number>\d{1,2})[.\]] +(?P<label>\S.*)")
_POINTED = re.compile(r"(?P<indent> *)❯ +(?P<label>\S.*)")
# What stands above a dialog: a rule, the top of a frame, or something that was said.
_ABOVE = re.compile(r"\s*(?:[─▔═]{10,}|╭─)|(?:[•◦■✗✔●❯›>⎿✻] )")
_DRAWN = re.compile(r"[─╌▔═╭╮╰╯ ]+\Z")
_MOST_ABOVE = 25
# The narrowest consent is taken, never one that reaches beyond this once.
_CONSENT = re.compile(r"(?:yes|allow|approve|trust)\b", re.IGNORECASE)
_WIDER = re.compile(r"\b(?:always|session|permanent|auto|parent|all)\b|don.t ask", re.IGNORECASE)
_REFUSAL = re.compile(r"(?:no|deny|reject|cancel|quit|stop|don.t trust)\b", re.IGNORECASE)
_OWN_WORDS = re.compile(
    r"type (?:something|your own answer)|enter a custom value|other \(type", re.IGNORECASE
)


class Choices:
    """The options of a dialog in order, which of them is pointed at (None: not to be seen), and its words."""

    __slots__ = ("at", "is_numbered", "labels", "text")

    def __init__(self, labels: Sequence[str], at: int | None, text: str, *, is_numbered: bool) -> None:
        self.labels = tuple(labels)
        self.is_numbered = is_numbered
        self.at = at
        self.text = text

    def consent(self) -> int | None:
        """Return the option that allows what is asked about, this once; None where there is none."""
        return self._first(lambda label: bool(_CONSENT.match(label)) and not _WIDER.search(label))

    def refusal(self) -> int | None:
        """Return the option that refuses."""
        return self._first(lambda label: bool(_REFUSAL.match(label)))

    def own_words(self) -> int | None:
        """Return the option that takes words of one's own."""
        return self._first(lambda label: bool(_OWN_WORDS.match(label)))

    def named(self, answer: str) -> int | None:
        """Return the option of that number or label; a label may be given without what explains it."""
        wanted = _plain(answer)
        if wanted.isdecimal() and 0 < int(wanted) <= len(self.labels):
            return int(wanted) - 1
        return self._first(lambda label: wanted in (_plain(label), _plain(re.split(r" {2,}| \(", label)[0])))

    def _first(self, fits: Callable[[str], bool]) -> int | None:
        return next((number for number, label in enumerate(self.labels) if fits(label)), None)


def read(screen: str) -> Choices | None:
    """Return the options of the dialog at the bottom of a screen; None where none are seen."""
    lines = [_bare(line) for line in screen.rstrip().split("\n")]
    return _numbered(lines) or _pointed(lines)


def _bare(line: str) -> str:
    """Return a line without the frame around it."""
    line = line.rstrip()
    if line.lstrip()[:1] in tuple(_FRAME):
        line = line.lstrip()[1:].rstrip(f" {_FRAME}")
        return line.removeprefix(" ")
    return line


def _numbered(lines: Sequence[str]) -> Choices | None:
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
    return Choices(labels, pointed, _words(lines, first, last), is_numbered=True)


def _number(line: str) -> int | None:
    option = _NUMBERED.match(line.lstrip())
    return int(option["number"]) if option else None


def _pointed(lines: Sequence[str]) -> Choices | None:
    at = next((number for number in reversed(range(len(lines))) if _POINTED.match(lines[number])), None)
    if at is None:
        return None
    found = _POINTED.match(lines[at])
    assert found is not None
    indent = " " * (len(found["indent"]) + 2)

    def is_option(number: int) -> bool:
        line = lines[number]
        return 0 <= number < len(lines) and line.startswith(indent) and line[len(indent) :][:1].strip() != ""

    first, last = at, at
    while first and is_option(first - 1):
        first -= 1
    while last + 1 < len(lines) and is_option(last + 1):
        last += 1
    labels = [lines[number].replace("❯", " ", 1).strip() for number in range(first, last + 1)]
    return Choices(labels, at - first, _words(lines, first, last), is_numbered=False)


def _words(lines: Sequence[str], first: int, last: int) -> str:
    """Return the dialog from its first line to its last option, without the pointer.

    What stands below changes with the pointer, and with the time.
    """
    top = first
    while top and first - top < _MOST_ABOVE and not _ABOVE.match(lines[top - 1]):
        top -= 1
    shown = [re.sub(r"^\s*[❯›●>] ", "", line).strip(f" {_FRAME}") for line in lines[top : last + 1]]
    return "\n".join(line for line in shown if line and not _DRAWN.match(line))


def _plain(text: str) -> str:
    return " ".join(text.split()).rstrip(".").casefold()
