"""Whether a screen shows messages of a conversation. Pure.

A program draws a message with signs, indents and wrapped lines of its own, so only letters and digits are
compared. It may show the beginning of a long message, or its end.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# A shorter text may be a part of something else, so it has to fill a line of its own.
_LONG_ENOUGH = 12
_PART = 60


def shows_any(screen: str, texts: Iterable[str]) -> bool:
    """Tell whether the screen shows one of these messages."""
    everything = _letters(screen)
    lines = {_letters(line) for line in screen.splitlines()}
    return any(_is_shown(_letters(text), everything, lines) for text in texts)


def _is_shown(letters: str, everything: str, lines: set[str]) -> bool:
    if len(letters) < _LONG_ENOUGH:
        return bool(letters) and letters in lines
    return letters[:_PART] in everything or letters[-_PART:] in everything


def _letters(text: str) -> str:
    return "".join(character for character in text if character.isalnum())
