"""Signs whose width a program and a terminal see differently: what is drawn with them goes astray.

Marks that join the sign before them, signs that only direct how others are read, flags and colours of emoji.
A program that draws only what has changed leaves some of them standing where it believes that nothing is.
"""

from __future__ import annotations

import re
from unicodedata import category

_OF_PARTS = re.compile("[\U0001f1e6-\U0001f1ff\U0001f3fb-\U0001f3ff]")
_JOINING = ("Mn", "Mc", "Me", "Cf", "Zl", "Zp")


def go_astray(text: str) -> bool:
    """Tell whether a text has such signs."""
    if text.isascii():
        return False
    return _OF_PARTS.search(text) is not None or any(category(sign) in _JOINING for sign in text)


def without_strays(text: str) -> str:
    """Return what can be seen in a text by itself."""
    if text.isascii():
        return text
    return "".join(sign for sign in text if category(sign) not in _JOINING)
