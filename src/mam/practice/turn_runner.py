"""Runs the turns of a conversation: begins each, resumes it after each pause, and ends it.

This module reads no terminal and no clock. A message is on disk before the agent answers it.
"""

from __future__ import annotations

from .dialog import Dialog
from .hooks import Hooks
from .options import Options
from .ordinary_turn import ordinary_turn
from .requested_turns import DRILLS
from .scrollback import INTERRUPTED, Output
from .slash_command_syntax import parse_command
from .transcript import Conversation, new_id
from .turn_actions import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .turn_actions import Turn


class Session:
    """At most one running turn, and the queue of messages that wait for its end."""

    def __init__(
        self, options: Options, conversation: Conversation, hooks: Hooks, folder: str, output: Output
    ) -> None:
        self.now = 0.0
        self.conversation = conversation
        self.folder = folder
        self.output = output
        self.queue: list[tuple[str, str]] = []
        self.dialog: Dialog | None = None
        self.busy_since = 0.0
        self.stage = Stage(
            output,
            speed=options.speed,
            permissions=options.permissions,
            fire=self.fire,
            fail=self._fail,
        )
        self._hooks = hooks
        self._turn: Turn | None = None
        self._wake = 0.0

    def is_busy(self) -> bool:
        """Tell whether a turn runs."""
        return self._turn is not None

    def take(self, text: str, display: str) -> None:
        """Begin a turn with a message, or queue it; `display` is what the screen shows of it."""
        if self._turn or self.queue:
            self.queue.append((text, display))
            self.fire("UserPromptSubmit", {"prompt": text})
        else:
            self._start(text, display, {"prompt": text})

    def advance(self) -> None:
        """Take one step of the turn if it is due, or begin with the next message. May raise Crash."""
        if self.dialog:
            return
        if self._turn:
            if self.now >= self._wake:
                self._step()
        elif self.queue:
            # This event has no prompt: the event at the time of queueing had it.
            self._start(*self.queue.pop(0), {"queued": True})

    def deadline(self) -> float | None:
        """Return when `advance` is due."""
        if self.dialog:
            return None
        if self._turn:
            return self._wake
        return self.now if self.queue else None

    def answer(self, choice: int) -> None:
        """Answer the open dialog."""
        self.dialog = None
        self._step(choice)

    def interrupt(self) -> None:
        """End the turn without firing a hook, as the real agents do."""
        if self._turn:
            self.discard_turn()
            self.output.tool(INTERRUPTED)

    def discard_turn(self) -> None:
        """End the turn without output."""
        if self._turn:
            self._turn.close()
        self._turn = None
        self.dialog = None
        self.stage.status = ""
        self.output.end()

    def start_new_conversation(self) -> None:
        """End this conversation, and begin a new one."""
        self.discard_turn()
        self.queue.clear()
        self.fire("SessionEnd", {"reason": "clear"})
        self.conversation = Conversation(new_id())
        self.fire("SessionStart", {"source": "clear"})

    def fire(self, event: str, facts: dict[str, object]) -> None:
        """Fire the hook of an event."""
        common: dict[str, object] = {
            "session_id": self.conversation.id,
            "transcript_path": self.conversation.path,
            "cwd": self.folder,
            "hook_event_name": event,
        }
        self._hooks.fire(event, common | facts)

    def _start(self, text: str, display: str, facts: dict[str, object]) -> None:
        earlier = self.conversation.user_messages()
        self.output.user(display)
        self._record("user", text)
        self.fire("UserPromptSubmit", facts)
        command = parse_command(text)
        if command and command[0] in DRILLS:
            self._turn = DRILLS[command[0]].turn(self.stage, command[1])
        else:
            self._turn = ordinary_turn(self.stage, text, earlier)
        self.busy_since = self.now
        self._step()

    def _step(self, choice: int | None = None) -> None:
        """Run the turn to its next pause, dialog or end."""
        turn = self._turn
        if turn is None:
            return
        try:
            step = next(turn) if choice is None else turn.send(choice)
        except StopIteration as stop:
            self._finish(stop.value)
            return
        if isinstance(step, Dialog):
            self.dialog = step
        else:
            self._wake = self.now + step

    def _finish(self, answer: str | None) -> None:
        self.discard_turn()
        if answer is not None:
            self._record("assistant", answer)
            self.fire("Stop", {"last_assistant_message": answer})

    def _fail(self, message: str, facts: dict[str, object]) -> None:
        self._record("assistant", message)
        self.fire("StopFailure", facts | {"last_assistant_message": message})

    def _record(self, kind: str, text: str) -> None:
        try:
            self.conversation.append(kind, text, self.folder)
        except OSError as error:
            self.output.answer(f"The transcript could not be written: {error.strerror}")
