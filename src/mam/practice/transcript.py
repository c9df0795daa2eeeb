"""Keeps the conversation on disk: one JSON line per turn, appended and never rewritten.

The first message creates the file. A line that cannot be parsed is skipped, because its writer may have been
killed; the next write begins a new line.
"""

from __future__ import annotations

import os
import time

from .options import Options

_HEX = frozenset("0123456789abcdefABCDEF")


class Refused(Exception):
    """The requested conversation cannot be opened; the text says why."""


class Conversation:
    """The turns of one conversation and the file that keeps them."""

    def __init__(self, ident: str, *, history: list[bytes] | None = None) -> None:
        self.id = ident
        self.path = transcript_path(ident)
        self.turns = [turn for turn in map(_read_turn, history or ()) if turn]
        self._inherited = b""

    def is_saved(self) -> bool:
        """Tell whether the conversation can be resumed."""
        return os.path.exists(self.path)

    def user_messages(self) -> list[str]:
        """Return the person's messages so far."""
        return [text for kind, text in self.turns if kind == "user"]

    def append(self, kind: str, text: str, folder: str) -> None:
        """Record one turn as a line, in one write. On OSError the turn is kept in memory only.

        The first turn also records the folder in which the conversation began.
        """
        self.turns.append((kind, text))
        line = self._inherited + _line({"type": kind, "text": text, "at": timestamp()})
        is_new = not self.is_saved()
        if is_new:
            os.makedirs(data_directory(), mode=0o700, exist_ok=True)
        _append(self.path, line)
        self._inherited = b""
        if is_new:
            place = _line({"cwd": folder, "id": self.id, "at": timestamp()})
            _append(os.path.join(data_directory(), "workspaces.jsonl"), place)

    def fork(self, ident: str) -> Conversation:
        """Return a copy with the same turns and another id; its first message creates the file."""
        copy = Conversation(ident)
        copy.turns = list(self.turns)
        with open(self.path, "rb") as lines:
            turn_lines = [line for line in lines.read().split(b"\n") if _read_turn(line)]
        copy._inherited = b"".join(line + b"\n" for line in turn_lines)
        return copy


def open_conversation(options: Options) -> Conversation:
    """Return the conversation that the options name; raises Refused."""
    if not options.resume:
        return _new(options.session_id)
    conversation = _existing(options.resume)
    if not options.fork_session:
        return conversation
    new = _new(options.session_id)
    return conversation.fork(new.id)


def new_id() -> str:
    """Return a random version 4 UUID."""
    raw = bytearray(os.urandom(16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def is_uuid(text: str) -> bool:
    """Tell whether a text has the form of a UUID; any other text must not become a file name."""
    parts = text.split("-")
    return [len(part) for part in parts] == [8, 4, 4, 4, 12] and _HEX.issuperset("".join(parts))


def data_directory() -> str:
    """Return the folder of all practice conversations."""
    base = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.local/share")
    return os.path.join(base, "mam-practice")


def transcript_path(ident: str) -> str:
    """Return the path of the conversation with this id."""
    return os.path.join(data_directory(), f"{ident}.jsonl")


def timestamp() -> str:
    """Return the current time in UTC, with milliseconds."""
    now = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z"


def _new(ident: str) -> Conversation:
    if ident and not is_uuid(ident):
        raise Refused("Error: Invalid session ID. Must be a valid UUID.")
    new = Conversation(ident or new_id())
    if new.is_saved():
        raise Refused(f"Error: Session ID {new.id} is already in use.")
    return new


def _existing(ident: str) -> Conversation:
    missing = Refused(f"No conversation found with session ID: {ident}")
    if not is_uuid(ident):
        raise missing
    try:
        with open(transcript_path(ident), "rb") as lines:
            return Conversation(ident, history=lines.read().split(b"\n"))
    except FileNotFoundError:
        raise missing from None
    except OSError as error:
        raise Refused(f"Error: {error.strerror}: {error.filename}") from None


def _read_turn(line: bytes) -> tuple[str, str] | None:
    """Return kind and text of a line; None if the line is not a turn."""
    import json

    try:
        turn = json.loads(line.decode())
        kind, text = turn["type"], turn["text"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return (kind, text) if kind in ("user", "assistant") and isinstance(text, str) else None


def _line(record: dict[str, str]) -> bytes:
    import json

    text = json.dumps(record, ensure_ascii=False)
    # Python's `splitlines` also splits at these three characters, and so may other readers.
    for char in "\x85\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        # A folder's name may contain bytes that are not UTF-8; escaped JSON can hold them.
        return json.dumps(record).encode() + b"\n"


def _append(path: str, line: bytes) -> None:
    """Append a line in one write; after an incomplete line, first add the missing line break."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        while line:
            line = line[os.write(descriptor, line) :]
    finally:
        os.close(descriptor)
