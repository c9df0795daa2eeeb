"""What a test may have the model answer: a text, a tool to use, or an error."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any

HELD_AT_MOST = 120.0


@dataclass(frozen=True, slots=True)
class Say:
    """A text, streamed word by word.

    `delay` is the time before each word. `before` holds the answer back before its first word,
    `midway` after half of the words, each until its event is set.
    """

    text: str
    delay: float = 0.0
    before: Event | None = None
    midway: Event | None = None

    def words(self) -> Iterator[str]:
        """Yield the words with their spaces, at the pace of the answer."""
        found = re.findall(r"\S+\s*|\s+", self.text)
        if self.before is not None:
            self.before.wait(HELD_AT_MOST)
        for number, word in enumerate(found):
            if self.midway is not None and number == len(found) // 2:
                self.midway.wait(HELD_AT_MOST)
            time.sleep(self.delay)
            yield word


@dataclass(frozen=True, slots=True)
class Call:
    """A tool by the name and arguments that the program itself offers."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    # Codex keeps the tools of a server together under the server's name.
    namespace: str | None = None


@dataclass(frozen=True, slots=True)
class McpCall:
    """A tool of the MCP server `mam`, by the name that each program gives it."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell command; with `asks` in such a way that Codex wants a permission for it."""

    command: str
    why: str = "run a command"
    asks: bool = True


@dataclass(frozen=True, slots=True)
class Question:
    """A question to the person with options to choose from, in the form that each program expects."""

    text: str = "Which color?"
    header: str = "Color"
    options: tuple[str, ...] = ("Red", "Green")

    def choices(self) -> list[dict[str, str]]:
        return [{"label": label, "description": f"the {label.lower()} one"} for label in self.options]


@dataclass(frozen=True, slots=True)
class Fail:
    """An HTTP error with the error body of the dialect."""

    status: int

    @property
    def message(self) -> str:
        return f"fake error {self.status}"


Reply = Say | Call | McpCall | Shell | Question | Fail
