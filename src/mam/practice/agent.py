"""The agent between keyboard and screen. The loop gives it keys and the time, and reads its outcome.

It reads no terminal and no clock itself, so that tests can drive it.
"""

from __future__ import annotations

from .dialog import Dialog, trust
from .editor import Editor
from .header_and_footer_rows import FRAME_SECONDS, header_rows
from .options import Options
from .redraw import COLOURS
from .slash_command_syntax import HELP, command_error, parse_command
from .text_width import clean, shorten
from .turn_runner import Session

AGAIN_SECONDS = 2.0
_TRUSTED = 1


class Outcome:
    """How the agent ends: its exit code, and the reason for SessionEnd; empty for no SessionEnd."""

    def __init__(self, code: int, reason: str = "") -> None:
        self.code = code
        self.reason = reason


class Agent:
    """A session, the draft of the next message, and the phase: starting, trust, ready or hung."""

    def __init__(self, options: Options, session: Session) -> None:
        self.now = 0.0
        self.outcome: Outcome | None = None
        self.phase = "starting"
        self.session = session
        self.editor = Editor()
        self.name = options.name
        self.suggestion = options.suggestion
        self.edge = "default"
        self.permissions = options.permissions
        self.again_until = 0.0
        self.wants_redraw = False
        self._output = session.output
        self._options = options
        self._trust: Dialog | None = None
        self._starts_at = 0.0
        self._is_announced = False

    def dialog(self) -> Dialog | None:
        """Return the dialog that waits for an answer."""
        return self._trust or self.session.dialog

    def start(self, now: float) -> None:
        """Begin to start; the input box appears after the slow start."""
        self._starts_at = now + self._options.slow_start

    def set_time(self, now: float) -> None:
        """Set the current time."""
        self.now = self.session.now = now

    def advance(self) -> None:
        """Do what is due now. May raise Crash."""
        if self.phase == "ready":
            self.session.advance()
        elif self.phase == "starting" and self.now >= self._starts_at:
            if self._options.trust_dialog:
                self.phase = "trust"
                self._trust = trust(self.session.folder)
            else:
                self._begin()

    def deadline(self) -> float | None:
        """Return when the next `advance` or repaint is due."""
        if self.phase == "starting":
            return self._starts_at
        due = [self.again_until] if self.again_until > self.now else []
        if self.phase == "hung" or (self.session.is_busy() and not self.session.dialog):
            due.append(self.now + FRAME_SECONDS)
        wake = self.session.deadline()
        if wake is not None and self.phase == "ready":
            due.append(wake)
        return min(due) if due else None

    def on_painted(self) -> bool:
        """Note that the screen is up to date; return True if that started something.

        The agent fires SessionStart only now, because a listener may type as soon as it gets it.
        """
        if self._is_announced or self.phase != "ready":
            return False
        self._is_announced = True
        source = "startup"
        if self._options.resume:
            source = "fork" if self._options.fork_session else "resume"
        self.session.fire("SessionStart", {"source": source})
        if self._options.prompt.strip():
            self.submit(self._options.prompt, self._options.prompt)
        return True

    def key(self, name: str, text: str) -> None:
        """Take one key."""
        dialog = self.dialog()
        if self.phase == "hung":
            return
        if dialog:
            self._answer(dialog.key(name, text))
            return
        is_second = self.now < self.again_until
        self.again_until = 0.0
        if name == "ctrl-c":
            self._cancel(is_second)
        elif self.phase == "starting":
            # Real agents behave like this: early text lands in the input box, and an early Enter is lost.
            self.editor.key(name, text)
        elif name == "enter":
            self._enter()
        elif name == "escape":
            self.session.interrupt()
        elif name == "ctrl-d" and not self.editor.text:
            self.leave()
        elif name == "redraw":
            self.wants_redraw = True
        else:
            self.editor.key("delete" if name == "ctrl-d" else name, text)

    def submit(self, text: str, display: str) -> None:
        """Take a message or a command; `display` is what the screen shows of it.

        Commands that need no turn act at once, even during a turn.
        """
        name, arguments = ("help", "") if text.strip() == "?" else parse_command(text) or ("", "")
        if name in _COMMANDS:
            self._output.user(display)
            _COMMANDS[name](self, arguments)
            return
        problem = command_error(name, arguments) if name else ""
        if problem:
            self._output.user(display)
            self._output.answer(problem)
        else:
            self.session.take(text, display)

    def leave(self, _arguments: str = "") -> None:
        """Exit at the person's request, or hang if the option says so."""
        self.session.discard_turn()
        if self._options.ignore_sigterm:
            self.phase = "hung"
        else:
            self.outcome = Outcome(0, "prompt_input_exit" if self._is_announced else "")

    def end(self, code: int) -> None:
        """Exit because of a signal or a lost terminal."""
        self.outcome = Outcome(code, "other" if self._is_announced else "")

    def _begin(self) -> None:
        self.phase = "ready"
        self._show_header()
        for kind, text in self.session.conversation.turns:
            self._output.show_earlier(kind, text)
        for text in self.session.conversation.user_messages():
            self.editor.remember(text)

    def _show_header(self) -> None:
        self._output.plain(header_rows(self._options.model, self.session.folder, self._output.columns))

    def _cancel(self, is_second: bool) -> None:
        if self.editor.text:
            self.editor.clear()
        elif self.session.is_busy():
            self.session.interrupt()
        elif is_second or self.phase == "starting":
            self.leave()
        else:
            self.again_until = self.now + AGAIN_SECONDS

    def _enter(self) -> None:
        if self.editor.is_blank():
            self.editor.clear()
        else:
            self.submit(*self.editor.take())

    def _answer(self, choice: int | None) -> None:
        if choice is None:
            return
        if not self._trust:
            self.session.answer(choice)
        elif choice == _TRUSTED:
            self._trust = None
            self._begin()
        else:
            self.outcome = Outcome(1)

    def _help(self, _arguments: str) -> None:
        rows = [shorten(line, self._output.columns - 1) for line in HELP.split("\n")]
        self._output.plain(["", *rows])

    def _clear(self, _arguments: str) -> None:
        self.session.start_new_conversation()
        self.wants_redraw = True
        # Output that is not painted yet belongs to the old conversation.
        self._output.take()
        self._show_header()

    def _rename(self, arguments: str) -> None:
        self.name = " ".join(clean(arguments).split())
        self._output.tool(f"Renamed to {self.name}" if self.name else "Name removed")

    def _color(self, arguments: str) -> None:
        colour = arguments.strip().lower()
        if colour in COLOURS:
            self.edge = colour
            self._output.tool(f"Colour set to {colour}")
        else:
            self._output.tool(f"Colours: {', '.join(COLOURS)}")


_COMMANDS = {
    "help": Agent._help,
    "exit": Agent.leave,
    "quit": Agent.leave,
    "clear": Agent._clear,
    "rename": Agent._rename,
    "color": Agent._color,
}
