"""Decodes the bytes of a terminal into keys. This module reads no terminal itself.

A key is a pair: its name, and the text of `text` and `paste`. The bytes may be split anywhere. A lone ESC is
a key only after a pause, because every escape sequence begins with it.
"""

from __future__ import annotations

from codecs import getincrementaldecoder

Key = tuple[str, str]

ESCAPE_WAIT = 0.05
#: The rest of a sequence may be late if tmux is busy; a person who types the same bytes is slower still.
SEQUENCE_WAIT = 0.5
#: A paste whose end marker is lost must not block the keyboard for ever.
PASTE_WAIT = 10.0

_ESC = 0x1B
_PASTE_END = b"\x1b[201~"
_CONTROLS = {
    0x01: "home",
    0x02: "left",
    0x03: "ctrl-c",
    0x04: "ctrl-d",
    0x05: "end",
    0x06: "right",
    0x08: "backspace",
    0x0A: "newline",
    0x0B: "kill-right",
    0x0C: "redraw",
    0x0D: "enter",
    0x0E: "down",
    0x10: "up",
    0x15: "kill-left",
    0x17: "kill-word",
    0x7F: "backspace",
}
_FINALS = {"A": "up", "B": "down", "C": "right", "D": "left", "H": "home", "F": "end", "M": "enter"}
_SEQUENCES = {
    "1~": "home",
    "3~": "delete",
    "4~": "end",
    "7~": "home",
    "8~": "end",
    "13;2u": "newline",
    "13;3u": "newline",
    "27;2;13~": "newline",
    "27;3;13~": "newline",
}
_ALT = {0x0A: "newline", 0x0D: "newline", 0x7F: "kill-word", 0x08: "kill-word"}


class Decoder:
    """Turns bytes into keys, and keeps incomplete bytes for the next call."""

    def __init__(self) -> None:
        self._pending = bytearray()
        self._paste: bytearray | None = None
        self._utf8 = getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> list[Key]:
        """Return the keys that `data` completes."""
        keys: list[Key] = []
        if self._paste is not None:
            data = self._more_paste(data, keys)
        self._pending += data
        while self._pending and self._paste is None:
            if not self._one(keys):
                break
        return keys

    def wait(self) -> float | None:
        """Return after how many seconds without input `expire` is due; None if nothing is incomplete."""
        if self._paste is not None:
            return PASTE_WAIT
        if not self._pending:
            return None
        return ESCAPE_WAIT if len(self._pending) == 1 else SEQUENCE_WAIT

    def expire(self) -> list[Key]:
        """Return the keys of the incomplete bytes, after a pause without input."""
        keys: list[Key] = []
        if self._paste is not None:
            self._end_paste(bytes(self._paste), keys)
            return keys
        rest = bytes(self._pending)
        self._pending.clear()
        if rest:
            keys.append(("escape", ""))
            self._text(rest[1:], keys)
        return keys

    def _one(self, keys: list[Key]) -> bool:
        """Decode one run of text, control or sequence from the front; return False if it is incomplete."""
        first = self._pending[0]
        if first == _ESC:
            return self._sequence(keys)
        if first < 0x20 or first == 0x7F:
            self._flush(keys)
            del self._pending[:1]
            if first == 0x09:
                self._text(b"\t", keys)
            elif first in _CONTROLS:
                keys.append((_CONTROLS[first], ""))
            return True
        end = 0
        for byte in self._pending:
            if byte < 0x20 or byte == 0x7F:
                break
            end += 1
        run = bytes(self._pending[:end])
        del self._pending[:end]
        self._text(run, keys)
        return True

    def _sequence(self, keys: list[Key]) -> bool:
        pending = self._pending
        if len(pending) == 1:
            return False
        self._flush(keys)
        second = pending[1]
        if second in b"[O":
            return self._control_sequence(keys)
        if second in _ALT:
            keys.append((_ALT[second], ""))
            del pending[:2]
        elif second < 0x20 or second >= 0x7F:
            keys.append(("escape", ""))
            del pending[:1]
        else:
            del pending[:2]
        return True

    def _control_sequence(self, keys: list[Key]) -> bool:
        pending = self._pending
        end = 2
        while end < len(pending) and 0x20 <= pending[end] < 0x40:
            end += 1
        if end == len(pending):
            return False
        if not 0x40 <= pending[end] < 0x7F:
            # A control character aborts the sequence, as in terminals; the control itself counts.
            del pending[:end]
            return True
        body = pending[2 : end + 1].decode("ascii")
        del pending[: end + 1]
        if body == "200~":
            self._paste = bytearray()
            rest = bytes(pending)
            pending.clear()
            pending += self._more_paste(rest, keys)
            return True
        name = _SEQUENCES.get(body) or _FINALS.get(body[-1])
        if name:
            keys.append((name, ""))
        return True

    def _more_paste(self, data: bytes, keys: list[Key]) -> bytes:
        """Add to the open paste; return what follows its end."""
        paste = self._paste
        if paste is None:
            return data
        # The end marker may begin in the last earlier bytes. Searching only from there keeps a long paste
        # linear.
        searched = max(0, len(paste) - len(_PASTE_END) + 1)
        paste += data
        end = paste.find(_PASTE_END, searched)
        if end < 0:
            return b""
        rest = bytes(paste[end + len(_PASTE_END) :])
        self._end_paste(bytes(paste[:end]), keys)
        return rest

    def _end_paste(self, content: bytes, keys: list[Key]) -> None:
        self._paste = None
        text = content.decode("utf-8", "replace")
        keys.append(("paste", text.replace("\r\n", "\n").replace("\r", "\n")))

    def _text(self, data: bytes, keys: list[Key]) -> None:
        self._add(self._utf8.decode(data), keys)

    def _flush(self, keys: list[Key]) -> None:
        """Finish an incomplete UTF-8 character, because a control character follows it."""
        self._add(self._utf8.decode(b"", True), keys)
        self._utf8.reset()

    @staticmethod
    def _add(text: str, keys: list[Key]) -> None:
        if not text:
            return
        if keys and keys[-1][0] == "text":
            text = keys.pop()[1] + text
        keys.append(("text", text))
