"""Finding the input box on a screen, as several agents draw it: a prompt between two horizontal rules."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_RULE = re.compile(r"─{4,}.*─\Z")
_ABOVE = 6


class Box:
    """The text in the input box, and the lines just above and below it."""

    __slots__ = ("above", "below", "inside")

    def __init__(self, inside: str, above: str, below: str) -> None:
        self.inside = inside
        self.above = above
        self.below = below

    def state(self) -> str:
        """Return `empty` or `draft`."""
        return "draft" if self.inside else "empty"


def screen_lines(text: str, most: int = 40) -> list[str]:
    """Return the last lines of a screen, without trailing spaces and without empty lines at the bottom."""
    return [line.rstrip() for line in text.rstrip().splitlines()][-most:]


def find_box(lines: Sequence[str], prompt: str = "❯") -> Box | None:
    """Return the lowest input box on the screen; None if there is none."""
    rules = [number for number, line in enumerate(lines) if _RULE.match(line)]
    if len(rules) < 2:
        return None
    top, bottom = rules[-2], rules[-1]
    if top + 1 >= bottom or not lines[top + 1].startswith(prompt):
        return None
    inside = "".join(lines[top + 1 : bottom])[len(prompt) :].replace("\xa0", " ").strip()
    return Box(inside, "\n".join(lines[max(0, top - _ABOVE) : top]), "\n".join(lines[bottom + 1 :]))
