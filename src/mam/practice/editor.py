"""The draft in the input box: text, cursor, folded pastes and history. This module draws nothing.

A long paste is one character of the draft, a lone surrogate that no UTF-8 input can
contain, so that every edit treats it as a unit. It unfolds when the draft is submitted.
"""

from __future__ import annotations

from .text_width import char_cells

FOLD_CHARS = 800
FOLD_LINES = 8
HISTORY = 100
_FIRST_FOLD = 0xDC00
_FOLDS = 0x400
_JOINER = "\u200d"


class Editor:
    """One draft and the drafts submitted before it."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._folds: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._pastes = 0
        self._history: list[str] = []
        self._at = 0
        self._unsent = ""

    def insert(self, text: str) -> None:
        """Put typed text at the cursor."""
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def paste(self, text: str) -> None:
        """Put pasted text at the cursor, folded if it is long."""
        lines = text.count("\n")
        fold = chr(_FIRST_FOLD + self._pastes % _FOLDS)
        if (len(text) <= FOLD_CHARS and lines < FOLD_LINES) or fold in self._folds:
            self.insert(text)
            return
        self._pastes += 1
        self._folds[fold] = text
        self._labels[fold] = f"[Pasted text #{self._pastes} +{lines} lines]"
        self.insert(fold)

    def key(self, name: str, text: str) -> None:
        """Apply one key; ignore a key that the editor does not know."""
        if name == "text":
            self.insert(text)
        elif name == "paste":
            self.paste(text)
        elif name == "newline":
            self.insert("\n")
        elif name in _MOVES:
            _MOVES[name](self)

    def display_of(self, char: str) -> str:
        """Return the label of a folded paste, or the character itself."""
        return self._labels.get(char, char)

    def is_blank(self) -> bool:
        """Tell whether the draft is only white space."""
        return not self._unfold(self.text).strip()

    def clear(self) -> None:
        """Discard the draft."""
        self.text = ""
        self.cursor = 0
        self._at = len(self._history)

    def take(self) -> tuple[str, str]:
        """Return the whole text and the displayed text, remember the draft, and empty the input box."""
        draft = self.text
        whole = self._unfold(draft)
        display = "".join(map(self.display_of, draft)) if self._folds else draft
        self.remember(draft)
        self.clear()
        return whole, display

    def remember(self, draft: str) -> None:
        """Put a text at the end of the history."""
        if not self._history or self._history[-1] != draft:
            self._history.append(draft)
            del self._history[:-HISTORY]
            self._forget_folds()
        self._at = len(self._history)

    def _forget_folds(self) -> None:
        """Forget pastes that no remembered draft contains, because a session may run for weeks."""
        for fold in [fold for fold in self._folds if not any(fold in draft for draft in self._history)]:
            del self._folds[fold], self._labels[fold]

    def _unfold(self, draft: str) -> str:
        if not self._folds:
            return draft
        return "".join(self._folds.get(char, char) for char in draft)

    def _cut(self, start: int, end: int) -> None:
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.cursor) + 1

    def _line_end(self) -> int:
        end = self.text.find("\n", self.cursor)
        return len(self.text) if end < 0 else end

    def _before(self) -> int:
        """Return the start of the visible character left of the cursor."""
        at = self.cursor - 1
        while at > 0 and (_is_mark(self.text[at]) or self.text[at - 1] == _JOINER):
            at -= 1
        return max(at, 0)

    def _after(self) -> int:
        at = self.cursor + 1
        while at < len(self.text) and (_is_mark(self.text[at]) or self.text[at - 1] == _JOINER):
            at += 1
        return min(at, len(self.text))

    def left(self) -> None:
        self.cursor = self._before()

    def right(self) -> None:
        self.cursor = self._after()

    def home(self) -> None:
        self.cursor = self._line_start()

    def end(self) -> None:
        self.cursor = self._line_end()

    def backspace(self) -> None:
        if self.cursor:
            self._cut(self._before(), self.cursor)

    def delete(self) -> None:
        if self.cursor < len(self.text):
            self._cut(self.cursor, self._after())

    def kill_left(self) -> None:
        """Delete to the start of the line; at the start, the line break. Repeated, it empties the box."""
        start = self._line_start()
        self._cut(max(start - 1, 0) if start == self.cursor else start, self.cursor)

    def kill_right(self) -> None:
        """Delete to the end of the line; at the end, the line break."""
        end = self._line_end()
        self._cut(self.cursor, min(end + 1, len(self.text)) if end == self.cursor else end)

    def kill_word(self) -> None:
        """Delete the white space and the word left of the cursor."""
        start = self.cursor
        while start and self.text[start - 1].isspace():
            start -= 1
        while start and not self.text[start - 1].isspace():
            start -= 1
        self._cut(start, self.cursor)

    def up(self) -> None:
        """Move to the line above; from the first line, to the previous draft of the history."""
        start = self._line_start()
        if not start:
            self._recall(self._at - 1)
            return
        above = self.text.rfind("\n", 0, start - 1) + 1
        self.cursor = min(above + self.cursor - start, start - 1)

    def down(self) -> None:
        """Move to the line below; from the last line, to the next draft of the history."""
        end = self._line_end()
        if end == len(self.text):
            self._recall(self._at + 1)
            return
        column = self.cursor - self._line_start()
        below = self.text.find("\n", end + 1)
        self.cursor = min(end + 1 + column, len(self.text) if below < 0 else below)

    def _recall(self, at: int) -> None:
        if not 0 <= at <= len(self._history):
            return
        if self._at == len(self._history):
            self._unsent = self.text
        self._at = at
        self.text = self._unsent if at == len(self._history) else self._history[at]
        self.cursor = len(self.text)


def _is_mark(char: str) -> bool:
    """Tell whether a character only modifies the one before it."""
    return char >= "\u0300" and not "\ud800" <= char <= "\udfff" and char_cells(char) == 0


_MOVES = {
    "left": Editor.left,
    "right": Editor.right,
    "home": Editor.home,
    "end": Editor.end,
    "up": Editor.up,
    "down": Editor.down,
    "backspace": Editor.backspace,
    "delete": Editor.delete,
    "kill-left": Editor.kill_left,
    "kill-right": Editor.kill_right,
    "kill-word": Editor.kill_word,
}
