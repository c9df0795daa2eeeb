"""Drives an agent without a terminal: the test gives keys and the time, and reads rows and events."""

from __future__ import annotations

from mam.practice.agent import Agent
from mam.practice.live_region_rows import live_region
from mam.practice.options import parse
from mam.practice.scrollback import Output
from mam.practice.transcript import open_conversation
from mam.practice.turn_runner import Session

BOX = ["─" * 80, "❯ ", "─" * 80, "  ? for help · permissions: ask"]


class Listener:
    """Replaces the hooks, and records their events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []

    def fire(self, event, payload):
        self.events.append((event, payload))

    def names(self) -> list[str]:
        return [event for event, _ in self.events]


class Held:
    """An agent that the test drives."""

    def __init__(self, *arguments: str) -> None:
        options = parse(["--speed", "0", *arguments])
        self.listener = Listener()
        self.output = Output(80)
        session = Session(options, open_conversation(options), self.listener, "/w", self.output)
        self.agent = Agent(options, session)
        self.rows: list[str] = []
        self.agent.start(0.0)
        self.pass_time(0.0)

    def pass_time(self, seconds: float) -> None:
        """Let time pass in small steps, as the loop does."""
        until = self.agent.now + seconds
        while True:
            self.agent.advance()
            self.agent.on_painted()
            self.rows += self.output.take()
            due = self.agent.deadline()
            if due is None or due > until or self.agent.outcome:
                break
            self.agent.set_time(max(due, self.agent.now))
        self.agent.set_time(until)

    def key(self, *names: str) -> None:
        for name in names:
            self.agent.key(name, "")
        self.rows += self.output.take()

    def send(self, text: str) -> None:
        self.agent.key("text", text)
        self.key("enter")

    def live(self, columns: int = 80, height: int = 24) -> list[str]:
        return live_region(self.agent, columns, height)[0]

    def turns(self) -> list[tuple[str, str]]:
        return self.agent.session.conversation.turns
