"""The lines of tmux's control mode, taken apart as they arrive.

Answers stand between `%begin` and a `%end` or `%error` with the same three numbers; whatever stands
outside is a notice. What a program prints comes raw inside an answer, so a line in it may look like
either: the numbers must match, and who asks recognises the end of its answers by a word of its own.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# No notice of interest is longer; what programs print is not kept at all.
LONGEST = 512


class Block:
    """One answer: whether the command succeeded, and what it printed."""

    __slots__ = ("body", "ok")

    def __init__(self, ok: bool, body: bytes) -> None:
        """Take the lines as one text, each with its newline."""
        self.ok = ok
        self.body = body


class Notice:
    """Something that happened: its name without the percent sign, and the first word after it."""

    __slots__ = ("name", "target")

    def __init__(self, name: str, target: str = "") -> None:
        """Take both words."""
        self.name = name
        self.target = target

    def __eq__(self, other: object) -> bool:
        """Compare both words: the same thing twice is one reason to look."""
        if not isinstance(other, Notice):
            return NotImplemented
        return self.name == other.name and self.target == other.target

    def __hash__(self) -> int:
        """Hash both words."""
        return hash((self.name, self.target))

    def __repr__(self) -> str:
        """Show both words."""
        return f"Notice({self.name!r}, {self.target!r})"


class ControlLines:
    """Takes bytes in any pieces and gives blocks and notices; keeps no more than one answer and one line."""

    __slots__ = ("_body", "_guard", "_rest", "_skipping")

    def __init__(self) -> None:
        """Start outside of any answer."""
        self._rest = b""
        self._guard = b""
        self._body: list[bytes] = []
        self._skipping = False

    def feed(self, data: bytes) -> Iterator[Block | Notice]:
        """Yield what is complete after these bytes."""
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            elif (found := self._take(line)) is not None:
                yield found
        self._rest = rest
        if self._skipping:
            self._rest = b""
        elif not self._guard and len(rest) > LONGEST:
            # A long line of output: what it says is in its first words, the rest is passed over.
            self._rest, self._skipping = b"", True
            if (found := self._take(rest)) is not None:
                yield found

    def kept(self) -> int:
        """Return how many bytes are waiting for the rest of their line."""
        return len(self._rest)

    def _take(self, line: bytes) -> Block | Notice | None:
        word, _, rest = line[:LONGEST].partition(b" ")
        if self._guard:
            if word in (b"%end", b"%error") and rest == self._guard:
                block = Block(word == b"%end", b"".join(self._body))
                self._guard, self._body = b"", []
                return block
            self._body += (line, b"\n")
            return None
        if word == b"%begin":
            self._guard = rest
            return None
        return _notice(word, rest)


def _notice(word: bytes, rest: bytes) -> Notice | None:
    if not word.startswith(b"%"):
        return None
    name = word[1:].decode("ascii", "replace")
    if name == "extended-output":
        name = "output"
    return Notice(name, rest.partition(b" ")[0].decode("ascii", "replace"))
