"""The turns of a conversation: begun, led from pause to pause, and ended.

Nothing here reads a terminal or a clock. A message is on disk before anything answers it.
"""

from __future__ import annotations

from .dialog import Dialog
from .hooks import Hooks
from .options import Options
from .ordinary_turn import ordinary_turn
from .requested_turns import DRILLS
from .scrollback import INTERRUPTED, Output
from .slash_commands import parse_command
from .transcript import Conversation, new_id
from .turn_actions import Stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .turn_actions import Turn


class Session:
    """At most one turn under way, and the messages that wait for its end."""

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
        """Say whether a turn is under way."""
        return self._turn is not None

    def take(self, text: str, shown: str) -> None:
        """Begin a turn with a message, or let it wait; `shown` is what the screen shows of it."""
        if self._turn or self.queue:
            self.queue.append((text, shown))
            self.fire("UserPromptSubmit", {"prompt": text})
        else:
            self._start(text, shown, {"prompt": text})

    def advance(self) -> None:
        """Take one step of the turn if it is due, or take up the next message. May raise Crash."""
        if self.dialog:
            return
        if self._turn:
            if self.now >= self._wake:
                self._step()
        elif self.queue:
            # Told once more, without its words: they were told when they were taken.
            self._start(*self.queue.pop(0), {"queued": True})

    def deadline(self) -> float | None:
        """Return when `advance` is due."""
        if self.dialog:
            return None
        if self._turn:
            return self._wake
        return self.now if self.queue else None

    def answer(self, choice: int) -> None:
        """Give the open dialog its answer."""
        self.dialog = None
        self._step(choice)

    def interrupt(self) -> None:
        """Give up the turn; nobody is told, as with the real agents."""
        if self._turn:
            self.drop()
            self.output.tool(INTERRUPTED)

    def drop(self) -> None:
        """Forget the turn without a word."""
        if self._turn:
            self._turn.close()
        self._turn = None
        self.dialog = None
        self.stage.status = ""
        self.output.end()

    def renew(self) -> None:
        """Leave this conversation for a new one."""
        self.drop()
        self.queue.clear()
        self.fire("SessionEnd", {"reason": "clear"})
        self.conversation = Conversation(new_id())
        self.fire("SessionStart", {"source": "clear"})

    def fire(self, event: str, facts: dict[str, object]) -> None:
        """Tell the hooks."""
        known: dict[str, object] = {
            "session_id": self.conversation.id,
            "transcript_path": self.conversation.path,
            "cwd": self.folder,
            "hook_event_name": event,
        }
        self._hooks.fire(event, known | facts)

    def _start(self, text: str, shown: str, facts: dict[str, object]) -> None:
        earlier = self.conversation.said()
        self.output.user(shown)
        self._keep("user", text)
        self.fire("UserPromptSubmit", facts)
        command = parse_command(text)
        if command and command[0] in DRILLS:
            self._turn = DRILLS[command[0]].turn(self.stage, command[1])
        else:
            self._turn = ordinary_turn(self.stage, text, earlier)
        self.busy_since = self.now
        self._step()

    def _step(self, choice: int | None = None) -> None:
        """Let the turn go on to its next pause, dialog or end."""
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

    def _finish(self, said: str | None) -> None:
        self.drop()
        if said is not None:
            self._keep("assistant", said)
            self.fire("Stop", {"last_assistant_message": said})

    def _fail(self, said: str, facts: dict[str, object]) -> None:
        self._keep("assistant", said)
        self.fire("StopFailure", facts | {"last_assistant_message": said})

    def _keep(self, kind: str, text: str) -> None:
        try:
            self.conversation.append(kind, text, self.folder)
        except OSError as error:
            self.output.answer(f"The transcript could not be written: {error.strerror}")
