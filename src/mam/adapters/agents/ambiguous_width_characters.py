"""Unicode signs to which a program and a terminal give different widths, which damages the drawing.

These are combining marks, format signs, line separators, and the parts of flags and of coloured emoji. A
program that redraws only what has changed leaves some of them on the screen, at places that it takes for
empty.
"""

from __future__ import annotations

_EMOJI_PARTS = "[\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]"
# tmux 3.3a draws what follows a joiner elsewhere, or leaves it out.
JOINER = "\u200d"
# What tmux shows for a line separator, and for every other sign that it cannot print.
_REPLACEMENT = "\ufffd"
_JOINING = ("Mn", "Mc", "Me", "Cf", "Zl", "Zp")


def has_unsafe_width(text: str) -> bool:
    """Tell whether a text has signs of unsafe width."""
    if text.isascii():
        return False
    import re
    from unicodedata import category

    return re.search(_EMOJI_PARTS, text) is not None or any(category(sign) in _JOINING for sign in text)


def without_joining_signs(text: str) -> str:
    """Return a text without the signs that are invisible or join the sign before them."""
    if text.isascii():
        return text
    from unicodedata import category

    return "".join(sign for sign in text if category(sign) not in _JOINING)


def reliably_shown(text: str) -> str:
    """Return a text without spaces and without the signs that a terminal may show otherwise or not at all."""
    if not text.isascii():
        import re

        text = without_joining_signs(re.sub(_EMOJI_PARTS, "", text)).replace(_REPLACEMENT, "")
    return "".join(text.split())
