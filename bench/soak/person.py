"""A person at the panes: types drafts that are never sent, and asks agents for what needs a permission."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.measure import until
from mam.adapters.system import process

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from bench.stage import Stage
    from mam.adapters.system.process import Identity

DRAFT = "draft that nobody sends"
_PROMPT = "❯"
QUESTION = "Do you want to proceed?"
_DIALOG_SECONDS = 10.0


@dataclass(frozen=True)
class Asked:
    """A dialog that nobody answers: the process that shows it, and the command that it asks about."""

    session: str
    pane: str
    agent: Identity
    command: str


class Person:
    """What a person typed, with tmux alone."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.asked: list[Asked] = []
        self._serial = 0

    def draft(self, pane: Any, wait: Callable[[], None]) -> str | None:
        """Type a draft, wait, and delete it."""
        if not self._is_box_empty(pane.id):
            return None
        self._serial += 1
        self._keys(pane.id, "-l", f"{DRAFT} {self._serial}")
        wait()
        self._keys(pane.id, "C-u")
        return str(pane.session_name)

    def ask(self, pane: Any) -> str | None:
        """Type a command that asks for a permission, unless the agent asks already, and see the dialog."""
        agent = process.identify(pane.pid)
        if agent is None or not self._is_box_empty(pane.id):
            return None
        self._serial += 1
        asked = Asked(pane.mark, pane.id, agent, f"touch asked-{self._serial}")
        self._keys(pane.id, "-l", f"/ask {asked.command}", ";", "send-keys", "-t", pane.id, "Enter")
        with suppress(RuntimeError):
            until(lambda: self.shows(asked) or not process.is_alive(agent), "the dialog", _DIALOG_SECONDS)
        if not self.shows(asked):
            return None
        self.asked.append(asked)
        return asked.command

    def shows(self, asked: Asked) -> bool:
        """Tell whether a pane shows that dialog."""
        screen = self.screen(asked.pane) or ""
        return asked.command in screen and QUESTION in screen

    def screen(self, pane_id: str) -> str | None:
        """Return what a pane shows."""
        return self.stage.tmux.capture([pane_id])[pane_id]

    def _is_box_empty(self, pane_id: str) -> bool:
        return any(line.strip() == _PROMPT for line in (self.screen(pane_id) or "").splitlines())

    def _keys(self, pane_id: str, *words: str) -> None:
        with suppress(RuntimeError):
            # The pane may be gone by now.
            self.stage.ask_tmux("send-keys", "-t", pane_id, *words)
