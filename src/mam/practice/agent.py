"""The agent between keyboard and screen: keys and the time are brought to it, an outcome is taken from it."""

from __future__ import annotations

from .dialog import Dialog, trust
from .editor import Editor
from .layout import FRAME_SECONDS, header_rows
from .options import Options
from .screen import COLOURS
from .slash_commands import HELP, complaint, parse_command
from .text_width import clean, shorten
from .turn_runner import Session

AGAIN_SECONDS = 2.0
_TRUSTED = 1


class Outcome:
    """How the agent ends: its exit code, and the reason for SessionEnd, empty if nobody is to hear it."""

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
        """Begin to start; the box appears when the slow start is over."""
        self._starts_at = now + self._options.slow_start

    def at(self, now: float) -> None:
        """Hear what time it is."""
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
        """Return when `advance` or a fresh look at the screen is due."""
        if self.phase == "starting":
            return self._starts_at
        due = [self.again_until] if self.again_until > self.now else []
        if self.phase == "hung" or (self.session.is_busy() and not self.session.dialog):
            due.append(self.now + FRAME_SECONDS)
        wake = self.session.deadline()
        if wake is not None and self.phase == "ready":
            due.append(wake)
        return min(due) if due else None

    def painted(self) -> bool:
        """Hear that the screen is up to date; True if that set something going.

        Only now does the agent say that it has started: whoever hears it may type.
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
            # As with the real agents: early text lands in the box, an early Enter is lost.
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

    def submit(self, text: str, shown: str) -> None:
        """Take a message or a command. Commands that are no turns act at once, even during a turn."""
        name, rest = ("help", "") if text.strip() == "?" else parse_command(text) or ("", "")
        if name in _COMMANDS:
            self._output.user(shown)
            _COMMANDS[name](self, rest)
            return
        problem = complaint(name, rest) if name else ""
        if problem:
            self._output.user(shown)
            self._output.answer(problem)
        else:
            self.session.take(text, shown)

    def leave(self, _rest: str = "") -> None:
        """Exit as the person asked, or hang there if that is what was ordered."""
        self.session.drop()
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
            self._output.past(kind, text)
        for text in self.session.conversation.said():
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

    def _help(self, _rest: str) -> None:
        rows = [shorten(line, self._output.columns - 1) for line in HELP.split("\n")]
        self._output.plain(["", *rows])

    def _clear(self, _rest: str) -> None:
        self.session.renew()
        self.wants_redraw = True
        # What was said before scrolls away with the old screen.
        self._output.take()
        self._show_header()

    def _rename(self, rest: str) -> None:
        self.name = " ".join(clean(rest).split())
        self._output.tool(f"Renamed to {self.name}" if self.name else "Name removed")

    def _color(self, rest: str) -> None:
        colour = rest.strip().lower()
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
