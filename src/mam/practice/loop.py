"""The main loop: it gives keys, signals and the time to the agent, and paints the agent's rows."""

from __future__ import annotations

from select import select
from signal import SIGCONT, SIGWINCH
from time import monotonic

from .agent import Agent, Outcome
from .hooks import Hooks
from .keys import Decoder
from .live_region_rows import live_region, title
from .redraw import Screen
from .signal_pipe import ENDINGS, Signals
from .terminal import PASTE_ON, Closed, Terminal
from .turn_actions import Crash

#: While input is still coming in, the screen is only refreshed this often.
_PAINT_SECONDS = 0.05


class Loop:
    """One agent on one terminal."""

    def __init__(
        self, agent: Agent, hooks: Hooks, terminal: Terminal, signals: Signals, screen: Screen
    ) -> None:
        self._agent = agent
        self._hooks = hooks
        self._terminal = terminal
        self._signals = signals
        self._screen = screen
        self._decoder = Decoder()
        self._last_input = 0.0
        self._painted = 0.0
        self._takes_pastes = False

    def run(self) -> int:
        """Run until the agent has an outcome; return its exit code."""
        try:
            self._terminal.raw()
            self._agent.start(monotonic())
            outcome = self._run_agent()
        except Crash as crash:
            outcome = Outcome(crash.code)
        except Closed:
            if self._agent.outcome is None:
                self._agent.end(129)
            outcome = self._agent.outcome or Outcome(129)
        self._close(outcome)
        return outcome.code

    def _run_agent(self) -> Outcome:
        agent = self._agent
        while True:
            agent.set_time(monotonic())
            agent.advance()
            if agent.outcome is None and self._paint() and agent.on_painted():
                continue
            if agent.outcome is None:
                self._wait()
            if agent.outcome is not None:
                return agent.outcome

    def _wait(self) -> None:
        """Sleep until input, a signal or a deadline comes, and process it."""
        terminal, signals = self._terminal, self._signals
        # A blocked write may have read the signal pipe already, so `select` would not notice the signal.
        timeout = 0.0 if signals.is_stopping() else self._timeout()
        readable, _, _ = select([terminal.input, signals.pipe], self._hooks.pipe(), [], timeout)
        self._agent.set_time(monotonic())
        self._take_signals()
        self._hooks.advance()
        if terminal.input in readable:
            self._last_input = self._agent.now
            self._take_keys(terminal.read())
        elif self._silence_is_over():
            for key in self._decoder.expire():
                self._agent.key(*key)

    def _timeout(self) -> float | None:
        wait = self._decoder.wait()
        silence = None if wait is None else self._last_input + wait
        due = [d for d in (self._agent.deadline(), self._hooks.deadline(), silence) if d is not None]
        return max(0.0, min(due) - monotonic()) if due else None

    def _silence_is_over(self) -> bool:
        wait = self._decoder.wait()
        return wait is not None and self._agent.now >= self._last_input + wait

    def _take_signals(self) -> None:
        for number in self._signals.take():
            if number in ENDINGS:
                self._agent.end(ENDINGS[number])
            elif number == SIGCONT:
                # The shell may have changed the mode of the terminal while this process was stopped.
                self._terminal.raw()
            elif number == SIGWINCH:
                self._screen.invalidate()

    def _take_keys(self, data: bytes) -> None:
        for key in self._decoder.feed(data):
            if self._agent.outcome is None:
                self._agent.key(*key)

    def _paint(self) -> bool:
        """Update the screen; return False if more input must be read first."""
        agent, screen, terminal = self._agent, self._screen, self._terminal
        if agent.now - self._painted < _PAINT_SECONDS and terminal.has_input():
            return False
        self._painted = agent.now
        columns, height = terminal.size()
        agent.session.output.fit(columns)
        text = ""
        if agent.wants_redraw:
            agent.wants_redraw = False
            text = screen.leave([], columns) + screen.forget()
        if agent.phase != "starting" and not self._takes_pastes:
            self._takes_pastes = True
            text += PASTE_ON
        screen.edge = agent.edge
        above = agent.session.output.take()
        live, cursor = live_region(agent, columns, height)
        terminal.write(text + screen.title(title(agent)) + screen.paint(above, live, cursor, columns))
        return True

    def _close(self, outcome: Outcome) -> None:
        """Restore the terminal, then run the last hooks: a hook that hangs must not keep the terminal."""
        session, terminal = self._agent.session, self._terminal
        self._signals.ignore_hangups()
        session.output.end()
        farewell = self._screen.leave(session.output.take(), terminal.size()[0])
        if outcome.reason == "prompt_input_exit" and session.conversation.is_saved():
            farewell += f"\r\nResume with: python -m mam.practice --resume {session.conversation.id}\r\n"
        terminal.restore(farewell)
        if outcome.reason:
            session.fire("SessionEnd", {"reason": outcome.reason})
            self._hooks.finish()
