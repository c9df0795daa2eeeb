"""What a turn may do: stream an answer, show a status, use a tool, fire hooks, and wait.

A turn is a generator. It yields a number of seconds to sleep, or a dialog to be answered. It returns the
agent's answer, or None if there is none. An interrupt closes it.
"""

from __future__ import annotations

from .dialog import CANCEL, Dialog, permission
from .scrollback import INTERRUPTED, Output
from .tools import run_tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    Fire = Callable[[str, dict[str, object]], None]
    Turn = Generator[float | Dialog, int, str | None]
    Use = Generator[float | Dialog, int, bool]
    Pause = Generator[float | Dialog, int, None]

_TICK = 0.02
_DONT_ASK_AGAIN = 1
_NO = 2


class Crash(Exception):
    """The agent must exit at once, as after a crash."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Stage:
    """The actions that turns may use."""

    def __init__(self, output: Output, *, speed: float, permissions: str, fire: Fire, fail: Fire) -> None:
        self.output = output
        self.status = ""
        self._speed = speed
        self._asks = permissions == "ask"
        self._allowed: set[str] = set()
        self.fire = fire
        self.fail = fail

    def seconds(self, words: int) -> float:
        """Return how many seconds it takes to stream so many words."""
        return words / self._speed if self._speed else 0.0

    def say(self, text: str) -> Pause:
        """Stream an answer word by word."""
        if not self._speed:
            self.output.stream(text)
            return
        words = text.split(" ")
        step = max(1, round(self._speed * _TICK))
        for start in range(0, len(words), step):
            lead = " " if start else ""
            self.output.stream(lead + " ".join(words[start : start + step]))
            yield self.seconds(step)

    def use_tool(self, command: str) -> Use:
        """Ask for permission if needed, and run a command; return False if the person denies it."""
        self.output.end()
        self.output.answer(f"Bash({command})")
        facts: dict[str, object] = {"tool_name": "Bash", "tool_input": {"command": command}}
        kind = command.split(maxsplit=1)[0]
        if self._asks and kind not in self._allowed:
            self.fire("PermissionRequest", facts)
            answer = yield permission(command)
            if answer in (CANCEL, _NO):
                self.output.tool(INTERRUPTED)
                return False
            if answer == _DONT_ASK_AGAIN:
                self._allowed.add(kind)
        self.output.tool(run_tool(command))
        self.fire("PostToolUse", facts)
        return True
