"""Composes the answer to an ordinary prompt from phrases; the same prompt gets the same answer."""

from __future__ import annotations

from zlib import crc32

from .answer_phrases import CLOSINGS, CODE, LISTS, OPENINGS, SENTENCES, TOPICS
from .text_width import clean, shorten

_RECALLS = ("what did i say", "what have i said", "what did i ask", "what did i tell", "what did i write")
_MORE_RECALLS = ("what do you remember", "my earlier messages", "my previous messages", "repeat what i said")
_MOST_RECALLED = 100


class Choice:
    """A series of choices that depends only on the prompt."""

    def __init__(self, seed: str) -> None:
        self._state = crc32(seed.encode("utf-8", "replace"))

    def below(self, count: int) -> int:
        """Return a number from 0 to `count` - 1."""
        self._state = (self._state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self._state >> 12) % count

    def pick(self, items: tuple[str, ...]) -> str:
        """Return one of the items."""
        return items[self.below(len(items))]

    def picks(self, items: tuple[str, ...], count: int) -> list[str]:
        """Return `count` different items in a chosen order."""
        remaining = list(items)
        return [remaining.pop(self.below(len(remaining))) for _ in range(min(count, len(remaining)))]


def thinking_words(prompt: str) -> int:
    """Return how long the agent thinks, as the number of words that it could write in that time."""
    return 20 + Choice(prompt + "?").below(20)


def asks_for_history(prompt: str) -> bool:
    """Tell whether the person asks for their earlier messages."""
    text = " ".join(prompt.lower().split())
    return any(phrase in text for phrase in _RECALLS + _MORE_RECALLS)


def recall(earlier: list[str]) -> str:
    """Return the earlier messages as an answer."""
    if not earlier:
        return "You have not said anything before this."
    lines = [f"{number}. {quote(text, 200)}" for number, text in enumerate(earlier, start=1)]
    if len(lines) > _MOST_RECALLED:
        lines[:-_MOST_RECALLED] = [f"({len(lines) - _MOST_RECALLED} messages before these)"]
    return "\n".join(["You said, in this order:", *lines])


def compose(prompt: str, *, after_tool: str = "") -> str:
    """Return an answer to a prompt; `after_tool` names the command that ran before it."""
    choice = Choice(prompt)
    topic = _topic(prompt)
    opening = choice.pick(OPENINGS).format(quote=quote(prompt, 48))
    if after_tool:
        opening = f"`{quote(after_tool, 48)}` finished without errors. {opening}"
    sentences = choice.picks(SENTENCES[topic], 3)
    parts = [f"{opening} {sentences[0]}"]
    shape = choice.below(3)
    if shape == 0:
        parts.append("\n".join(f"- {item}" for item in choice.picks(LISTS, 3)))
    elif shape == 1:
        parts.append(choice.pick(CODE))
    parts.append(" ".join([*sentences[1 : 2 + (shape == 2)], choice.pick(CLOSINGS)]))
    return "\n\n".join(parts)


def quote(text: str, room: int) -> str:
    """Return the beginning of a text on one line."""
    return shorten(clean(" ".join(text[: 8 * room].split())), room)


def _topic(prompt: str) -> str:
    words = set(prompt.lower().split())
    for topic, signs in TOPICS.items():
        if words & signs:
            return topic
    return "work"
