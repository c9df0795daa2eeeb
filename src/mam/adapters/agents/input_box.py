"""Finding the input box on a screen: a prompt between two full-width rules, as several agents draw it."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_RULE = re.compile(r"─{4,}.*─\Z")
_ABOVE = 6


class Box:
    """What stands in the box, and the lines just above it."""

    __slots__ = ("above", "below", "inside")

    def __init__(self, inside: str, above: str, below: str) -> None:
        self.inside = inside
        self.above = above
        self.below = below

    def state(self) -> str:
        """Return `empty` or `draft`."""
        return "draft" if self.inside else "empty"


def screen_lines(text: str, most: int = 40) -> list[str]:
    """Return the last lines of a screen, without what is blank at their ends and at the bottom."""
    return [line.rstrip() for line in text.rstrip().splitlines()][-most:]


def find_box(lines: Sequence[str], prompt: str = "❯") -> Box | None:
    """Return the lowest box on the screen; None if there is none."""
    rules = [number for number, line in enumerate(lines) if _RULE.match(line)]
    if len(rules) < 2:
        return None
    top, bottom = rules[-2], rules[-1]
    if top + 1 >= bottom or not lines[top + 1].startswith(prompt):
        return None
    inside = "".join(lines[top + 1 : bottom])[len(prompt) :].replace("\xa0", " ").strip()
    return Box(inside, "\n".join(lines[max(0, top - _ABOVE) : top]), "\n".join(lines[bottom + 1 :]))
