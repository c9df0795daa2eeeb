"""The loop that brings keys, signals and time to the agent and its rows to the terminal."""

from __future__ import annotations

from select import select
from signal import SIGCONT
from time import monotonic

from .agent import Agent, Outcome
from .hooks import Hooks
from .keys import Decoder
from .live_region import live_region, title
from .screen import Screen
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
        self._heard = 0.0
        self._painted = 0.0
        self._takes_pastes = False

    def run(self) -> int:
        """Live until the agent has an outcome; return its exit code."""
        try:
            self._terminal.raw()
            self._agent.start(monotonic())
            outcome = self._live()
        except Crash as crash:
            outcome = Outcome(crash.code)
        except Closed:
            if self._agent.outcome is None:
                self._agent.end(129)
            outcome = self._agent.outcome or Outcome(129)
        self._close(outcome)
        return outcome.code

    def _live(self) -> Outcome:
        agent = self._agent
        while True:
            agent.at(monotonic())
            agent.advance()
            if agent.outcome is None and self._paint() and agent.painted():
                continue
            if agent.outcome is None:
                self._wait()
            if agent.outcome is not None:
                return agent.outcome

    def _wait(self) -> None:
        """Sleep until something comes or is due, and take what came."""
        terminal, signals = self._terminal, self._signals
        # A blocked write may have met a signal already; the pipe is then empty.
        patience = 0.0 if signals.is_stopping() else self._patience()
        readable, _, _ = select([terminal.input, signals.pipe], self._hooks.pipe(), [], patience)
        self._agent.at(monotonic())
        self._take_signals()
        self._hooks.advance()
        if terminal.input in readable:
            self._heard = self._agent.now
            self._take_keys(terminal.read())
        elif self._silence_is_over():
            for key in self._decoder.expire():
                self._agent.key(*key)

    def _patience(self) -> float | None:
        wait = self._decoder.wait()
        silence = None if wait is None else self._heard + wait
        due = [d for d in (self._agent.deadline(), self._hooks.deadline(), silence) if d is not None]
        return max(0.0, min(due) - monotonic()) if due else None

    def _silence_is_over(self) -> bool:
        wait = self._decoder.wait()
        return wait is not None and self._agent.now >= self._heard + wait

    def _take_signals(self) -> None:
        for number in self._signals.take():
            if number in ENDINGS:
                self._agent.end(ENDINGS[number])
            elif number == SIGCONT:
                # Whoever stopped us may have changed the terminal meanwhile.
                self._terminal.raw()

    def _take_keys(self, data: bytes) -> None:
        for key in self._decoder.feed(data):
            if self._agent.outcome is None:
                self._agent.key(*key)

    def _paint(self) -> bool:
        """Bring the screen up to date; False if more input comes first."""
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
        """Give the terminal back first: a hook that hangs must not keep it."""
        session, terminal = self._agent.session, self._terminal
        self._signals.outlive_hangups()
        session.output.end()
        farewell = self._screen.leave(session.output.take(), terminal.size()[0])
        if outcome.reason == "prompt_input_exit" and session.conversation.is_saved():
            farewell += f"\r\nResume with: python -m mam.practice --resume {session.conversation.id}\r\n"
        terminal.restore(farewell)
        if outcome.reason:
            session.fire("SessionEnd", {"reason": outcome.reason})
            self._hooks.finish()
