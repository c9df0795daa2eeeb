"""Parses the answers of tmux.

A row is `NONCE numbers,lengths NONCE text NONCE text ... NONCE`. The nonce is random and new for each
call, and each text comes with its length in bytes, so that no title, name or directory can forge a
field or a row. Every tmux counts bytes. tmux 3.4 and 3.5 count first and then write control characters and
invalid UTF-8 as backslash escapes; the length tells whether to undo that.
"""

from __future__ import annotations

import os

from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# In the order of argv.NUMBERS, argv.TEXTS and their extensions for a full row.
_NUMBERS = 9
_TEXTS = 5
_BRIEF_NUMBERS = 3
_BRIEF_PARTS = 3
_FULL_NUMBERS = 13
_FULL_TEXTS = 8
_NO_NUMBER = "a field of tmux's answer is not a number"


class Garbled(Exception):
    """The answer does not have the expected form; nothing may be concluded from it."""


class Pane:
    """One pane as tmux shows it. mam wrote `mark` and `root` on it; `attached` counts terminals."""

    __slots__ = (
        "attached",
        "command",
        "cursor_x",
        "cursor_y",
        "dead",
        "dead_signal",
        "dead_status",
        "height",
        "id",
        "in_mode",
        "mark",
        "path",
        "pid",
        "root",
        "server_pid",
        "session_id",
        "session_name",
        "title",
        "tty",
        "width",
        "window_id",
    )

    def __init__(self, numbers: list[bytes], texts: list[bytes], roots: dict[bytes, str]) -> None:
        """Read the fields of one row; `roots` caches decoded directories between rows."""
        self.id = numbers[0].decode()
        self.session_id = numbers[1].decode()
        self.window_id = numbers[2].decode()
        self.pid = int(numbers[3] or 0)
        self.dead = numbers[4] not in (b"", b"0")
        self.dead_status = int(numbers[5]) if numbers[5] else None
        self.dead_signal = int(numbers[6]) if numbers[6] else None
        self.in_mode = numbers[7] not in (b"", b"0")
        self.server_pid = int(numbers[8])
        self.session_name = texts[0].decode("utf-8", "replace")
        self.mark = texts[1].decode("utf-8", "replace")
        root = roots.get(texts[2])
        if root is None:
            root = roots[texts[2]] = decode_root(texts[2])
        self.root = root
        self.tty = os.fsdecode(texts[3])
        # A control client has no terminal, so nobody looks at it.
        self.attached = texts[4].count(b"/dev/") if texts[4] else 0
        self.width = self.height = self.cursor_x = self.cursor_y = 0
        self.title = self.path = self.command = ""

    def fill(self, numbers: list[bytes], texts: list[bytes]) -> None:
        """Read the further fields of a full row."""
        self.width, self.height, self.cursor_x, self.cursor_y = (int(number or 0) for number in numbers)
        self.title = texts[0].decode("utf-8", "replace")
        self.path = os.fsdecode(texts[1])
        self.command = texts[2].decode("utf-8", "replace")

    def __repr__(self) -> str:
        """Show the fields that identify the pane."""
        return f"<Pane {self.id} {self.session_name} pid={self.pid} mark={self.mark!r} dead={self.dead}>"


class BriefPane(Pane):
    """A pane of a brief listing: it has only id, process and mark; the other fields are empty."""

    __slots__ = ()
    session_name = session_id = window_id = root = tty = title = path = command = ""
    dead_status = dead_signal = None
    in_mode = False
    attached = width = height = cursor_x = cursor_y = server_pid = 0

    def __init__(self, numbers: list[bytes], mark: bytes) -> None:
        """Read the few fields of one row."""
        self.id = numbers[0].decode()
        self.pid = int(numbers[1] or 0)
        self.dead = numbers[2] not in (b"", b"0")
        self.mark = mark.decode("utf-8", "replace")


class Listing:
    """All panes of a server. If it is not `confirmed`, a pane that is missing here may still exist."""

    __slots__ = ("_by_mark", "confirmed", "error", "panes", "server_pid")

    def __init__(
        self, confirmed: bool, panes: list[Pane], error: str | None = None, server_pid: int | None = None
    ) -> None:
        """Store the panes; if no server runs, the listing is confirmed and empty."""
        self.confirmed = confirmed
        self.panes = panes
        self.error = error
        self.server_pid = server_pid
        self._by_mark: dict[str, list[Pane]] | None = None

    def marked(self, mark: str | None) -> list[Pane]:
        """Return the panes that carry a mark; the first call makes an index for all marks."""
        if self._by_mark is None:
            self._by_mark = {}
            for pane in self.panes:
                if pane.mark:
                    self._by_mark.setdefault(pane.mark, []).append(pane)
        return self._by_mark.get(mark or "", [])


class PaneScreen:
    """One pane and its screen at one moment; `captured` has the sequences of the styles."""

    __slots__ = ("captured", "cursor_x", "cursor_y", "pane")

    def __init__(self, pane: Pane, captured: str) -> None:
        """Store a full pane and the lines that it shows."""
        self.pane = pane
        self.captured = captured
        self.cursor_x = pane.cursor_x
        self.cursor_y = pane.cursor_y

    @property
    def screen(self) -> str:
        """The lines as plain text."""
        from mam.core.terminal_cells import plain_text

        return plain_text(self.captured)


class Capture:
    """The screen of one pane, with or without the sequences of its styles, and its cursor.

    `written_at` is the whole second in which a program last wrote into the pane's window; 0 if unknown.
    """

    __slots__ = ("captured", "cursor_x", "cursor_y", "written_at")

    def __init__(self, captured: str, cursor_x: int = 0, cursor_y: int = 0, written_at: int = 0) -> None:
        self.captured = captured
        self.cursor_x = cursor_x
        self.cursor_y = cursor_y
        self.written_at = written_at


def rows(answer: bytes, nonce: str, full: bool = False) -> Iterator[Pane]:
    """Yield one pane per row; raise Garbled for an incomplete row."""
    count, texts_count = (_FULL_NUMBERS, _FULL_TEXTS) if full else (_NUMBERS, _TEXTS)
    roots: dict[bytes, str] = {}
    for numbers, texts in _fields(answer, nonce, count, texts_count):
        try:
            pane = Pane(numbers, texts, roots)
            if full:
                pane.fill(numbers[_NUMBERS:count], texts[_TEXTS:])
        except ValueError as cause:
            raise Garbled(_NO_NUMBER) from cause
        yield pane


def brief_rows(answer: bytes, nonce: str) -> Iterator[Pane]:
    """Yield one pane per row of a brief listing; raise Garbled for an incomplete row."""
    parts = answer.split(nonce.encode())
    if len(parts) % _BRIEF_PARTS != 1:
        raise Garbled("tmux's answer is not whole")
    for place in range(1, len(parts), _BRIEF_PARTS):
        numbers = parts[place].split(b",")
        if len(numbers) != _BRIEF_NUMBERS or not parts[place + 2].startswith(b"\n"):
            raise Garbled("a row of tmux's answer is not whole")
        try:
            pane = BriefPane(numbers, parts[place + 1])
        except ValueError as cause:
            raise Garbled(_NO_NUMBER) from cause
        yield pane


def _fields(
    answer: bytes, nonce: str, count: int, texts_count: int
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    parts = answer.split(nonce.encode())
    # A row is its head, its texts and a newline. The parts are counted, so that no text can begin a row.
    # Other text may stand before the first row and after the last: tmux hooks of the user print it.
    step = texts_count + 2
    if len(parts) % step != 1:
        raise Garbled("tmux's answer is not whole")
    for place in range(1, len(parts), step):
        numbers = parts[place].split(b",")
        texts = parts[place + 1 : place + step - 1]
        if len(numbers) != count + texts_count or not parts[place + step - 1].startswith(b"\n"):
            raise Garbled("a row of tmux's answer is not whole")
        try:
            _check_lengths(texts, numbers[count:])
        except ValueError as cause:
            raise Garbled(_NO_NUMBER) from cause
        yield numbers[:count], texts


def _check_lengths(texts: list[bytes], lengths: list[bytes]) -> None:
    for place, length in enumerate(lengths):
        if len(texts[place]) != int(length):
            texts[place] = _unescape(texts[place], int(length))


_ESCAPES = {ord(letter): code for letter, code in zip("abvfrst0", (7, 8, 11, 12, 13, 32, 9, 0), strict=True)}


def _unescape(text: bytes, length: int) -> bytes:
    """Undo the escapes of tmux 3.4 and 3.5; if the result has another length, return text unchanged."""
    out = bytearray()
    place = 0
    while place < len(text):
        octal = text[place + 1 : place + 4]
        if text[place] != 0x5C or place + 1 == len(text):
            out.append(text[place])
            place += 1
        elif len(octal) == 3 and not octal.strip(b"01234567") and octal <= b"377":
            out.append(int(octal, 8))
            place += 4
        elif text[place + 1] in _ESCAPES:
            out.append(_ESCAPES[text[place + 1]])
            place += 2
        else:
            # tmux 3.4 and 3.5 put a backslash before `$` and a letter; any other backslash is text.
            if text[place + 1] != 0x24:
                out.append(0x5C)
            out.append(text[place + 1])
            place += 2
    return bytes(out) if len(out) == length else text


def listing(answer: bytes, nonce: str, full: bool = False) -> Listing:
    """Return the panes of an answer, each once, also if several sessions share its window."""
    return _listing(rows(answer, nonce, full))


def brief_listing(answer: bytes, nonce: str) -> Listing:
    """Return the panes of a brief answer."""
    return _listing(brief_rows(answer, nonce))


def _listing(panes_of_rows: Iterator[Pane]) -> Listing:
    panes: dict[str, Pane] = {}
    try:
        for pane in panes_of_rows:
            first = panes.setdefault(pane.id, pane)
            if first is not pane and pane.attached:
                first.attached += pane.attached
    except Garbled as cause:
        return Listing(False, [], str(cause))
    unique = list(panes.values())
    return Listing(True, unique, None, unique[0].server_pid if unique else None)


def encode_root(root: str) -> str:
    """Return a directory as hex for the pane option, so that tmux does not interpret it."""
    return os.fsencode(root).hex()


def decode_root(value: bytes) -> str:
    """Return the directory of a pane option; return text that mam did not write unchanged."""
    try:
        return os.fsdecode(bytes.fromhex(value.decode("ascii")))
    except ValueError:
        return value.decode("utf-8", "replace")


def look_parts(answer: bytes, nonce: str) -> tuple[bytes, str]:
    """Return the row and the screen of an answer to argv.look."""
    key = nonce.encode()
    pane_and_screen, _, _ = answer.rpartition(key + b"end")
    row, end, screen = pane_and_screen.rpartition(key + b"\n")
    return row + end, screen.decode("utf-8", "replace")


def captures(answer: bytes, nonce: str) -> dict[str, Capture]:
    """Return the screens of an answer to argv.capture_script, by pane id; leave out missing panes.

    Each screen stands before the nonce, the number of its pane and the facts about the pane.
    """
    found: dict[str, Capture] = {}
    screen, *parts = answer.split(nonce.encode())
    for part in parts:
        line, _, following = part.partition(b"\n")
        number, *texts = line.decode("ascii", "replace").split(",")
        facts = [whole_number(text) or 0 for text in (*texts, "", "", "")[:3]]
        found["%" + number] = Capture(screen.decode("utf-8", "replace"), *facts)
        screen = following
    return found


def version(answer: str) -> tuple[int, int] | None:
    """Return (major, minor) of the output of `tmux -V`; None if it has no number (a development build)."""
    for word in answer.replace("-", " ").split():
        major, dot, rest = word.partition(".")
        digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
        numbers = whole_number(major), whole_number(digits)
        if dot and numbers[0] is not None and numbers[1] is not None:
            return numbers[0], numbers[1]
    return None


def options(answer: str) -> dict[str, str]:
    """Return the options of a `name value` answer."""
    values: dict[str, str] = {}
    for line in answer.splitlines():
        name, _, value = line.partition(" ")
        if name:
            values[name] = value
    return values
