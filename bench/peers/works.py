"""The works that are the same for every program, and what was seen of each."""

from __future__ import annotations

import os
import signal
import time
from itertools import count
from statistics import median
from typing import TYPE_CHECKING, Any

from bench.peers.fake_claude import LEAVES
from bench.peers.place import Failed, is_alive, kill, when_gone
from bench.peers.texts import hard_texts, word_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bench.peers.programs import Program

    Act = Callable[[], dict[str, float]]

# A text that has not arrived by then counts as lost; the slowest arrival that was seen took a third of it.
ARRIVAL_SECONDS = 12.0
GONE_SECONDS = 30.0
_numbers = count(1)


class Side:
    """One program, and what was measured of it."""

    def __init__(self, program: Program) -> None:
        """Begin with no session and no number."""
        self.program, self.place = program, program.place
        self.samples: dict[str, list[float]] = {}
        self.failures: dict[str, str] = {}
        self.fleet: list[str] = []
        self.open: tuple[str, int] | None = None
        self.facts: dict[str, Any] = {}

    def measure(self, work: str, act: Act, counts: bool) -> None:
        """Do a work once; keep its times, or the first failure."""
        try:
            times = act()
        except Failed as failure:
            self.failures.setdefault(work, str(failure))
            return
        if counts:
            for name, seconds in times.items():
                self.samples.setdefault(name, []).append(seconds * 1000)

    def create(self) -> dict[str, float]:
        """Start a session that the later works of the round use."""
        self.open = None
        since = len(self.place.read_record())
        began = time.monotonic()
        handle = self.program.create(new_name())
        returned = time.monotonic()
        started = self.place.wait_for(lambda event: event["event"] == "started", "the agent", since)
        self.open = handle, started["pid"]
        return {"create": started["at"] - began, "create returned": returned - began}

    def send(self) -> dict[str, float]:
        """Send a plain text to the session of the round."""
        handle, _ = self.opened()
        text = f"please look at item text{next(_numbers):05}"
        since = len(self.place.read_record())
        began = time.monotonic()
        self.place.run(self.program.send_argv(handle, text))
        returned = time.monotonic()
        heard = self.place.wait_for(lambda event: is_heard(event, text), "the text", since)
        rest(self, since)
        return {"send": heard["at"] - began, "send returned": returned - began}

    def stop(self) -> dict[str, float]:
        """Stop the session of the round."""
        handle, pid = self.opened()
        self.open = None
        returned: list[float] = []
        began = time.monotonic()

        def act() -> None:
            self.program.stop(handle)
            returned.append(time.monotonic() - began)

        gone = when_gone(pid, act, GONE_SECONDS)
        if gone is None:
            raise Failed(f"the process is still there after {GONE_SECONDS:.0f} s")
        return {"stop": gone, "stop returned": returned[0]}

    def opened(self) -> tuple[str, int]:
        if self.open is None:
            raise Failed("there is no session to do it with")
        return self.open

    def fill(self, size: int) -> None:
        """Have that many sessions, whose agents all run."""
        missing = size - len(self.fleet)
        since = len(self.place.read_record())
        names = [new_name() for _ in range(missing)]
        try:
            self.fleet += self.program.fill(names)
        except Failed as failure:
            self.failures[f"list {size}"] = f"with {len(self.fleet)} sessions: {failure}"
            return
        deadline = time.monotonic() + 120
        while sum(event["event"] == "started" for event in self.place.read_record()[since:]) < missing:
            if time.monotonic() > deadline:
                self.failures[f"list {size}"] = "not every agent started within 120 s"
                return
            time.sleep(0.05)

    def list(self, size: int) -> dict[str, float]:
        """List the sessions; a list without all of them does not count."""
        began = time.monotonic()
        text = self.program.list()
        seconds = time.monotonic() - began
        shown = sum(self.program.is_listed(handle, text) for handle in self.fleet)
        self.facts[f"listed {size}"] = [shown, len(self.fleet)]
        return {f"list {size}": seconds}


def new_name() -> str:
    """Return a name for a session."""
    return f"agent-{next(_numbers)}"


def is_heard(event: dict[str, Any], text: str) -> bool:
    """Tell whether an event of a fake has a text, as a prompt or within the context of a prompt."""
    if event["event"] == "context":
        return event["hook"] != "SessionStart" and text in event["text"]
    return event["event"] == "text" and text in event["text"]


def is_exact(event: dict[str, Any], text: str) -> bool:
    """Tell whether the text arrived as it was sent; within a context it has words around it."""
    return event["text"] == text if event["event"] == "text" else text in event["text"]


def rounds(sides: Sequence[Side], number: int, works: dict[str, Callable[[Side], Act]]) -> None:
    """Do the works in rounds, side after side, in an order that turns every round; the first one warms up."""
    for at in range(-1, number):
        for name, act_of in works.items():
            for side in sides if at % 2 else sides[::-1]:
                side.measure(name, act_of(side), at >= 0)


def insist(
    side: Side, handle: str, text: str, since: int, seconds: float = ARRIVAL_SECONDS
) -> dict[str, Any]:
    """Send a text and return how it arrived; a send that is refused is tried again, as a user would."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            side.place.run(side.program.send_argv(handle, text))
            break
        except Failed:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
    event = side.place.wait_for(lambda event: is_heard(event, word_of(text)), "the text", since, seconds)
    rest(side, since)
    return event


def rest(side: Side, since: int) -> None:
    """Wait until the turn of the fake that was asked is over."""
    side.place.wait_for(lambda event: event["event"] == "rests", "the end of the turn", since)


def hard(side: Side, texts: dict[str, str] | None = None) -> None:
    """Send each hard text once to one session; keep which arrived byte for byte."""
    texts = texts or hard_texts()
    exact: list[str] = []
    other: dict[str, str] = {}
    try:
        side.create()
    except Failed as failure:
        side.failures["texts"] = str(failure)
        return
    handle, pid = side.opened()
    for name, text in texts.items():
        since = len(side.place.read_record())
        try:
            event = insist(side, handle, text, since)
        except Failed as failure:
            instead = [
                event["text"] for event in side.place.read_record()[since:] if event["event"] == "text"
            ]
            other[name] = f"instead {instead[0][:40]!r}" if instead else str(failure)
            # What is left of it in the input box would spoil the next one.
            if is_alive(pid):
                os.kill(pid, signal.SIGUSR1)
            continue
        if is_exact(event, text):
            exact.append(name)
        else:
            other[name] = difference(text, event["text"])
    side.facts["texts"] = {"exact": len(exact), "of": len(texts), "other": other}
    side.measure("stop texts", side.stop, counts=False)


def difference(sent: str, heard: str) -> str:
    """Return in words how a text was changed."""
    if heard == f" {sent}":
        return "with a space before it"
    if heard == f"{sent} ":
        return "with a space after it"
    if heard.strip() == sent.strip():
        return "without the spaces at an end" if len(heard) < len(sent) else "with spaces at an end"
    if sent.startswith(heard):
        return f"only the first {len(heard)} of {len(sent)} characters"
    if sent.endswith(heard):
        return f"only the last {len(heard)} of {len(sent)} characters"
    return f"changed: {heard[:40]!r}"


def children(side: Side) -> None:
    """Stop an agent that leaves two children behind; keep which of them were ended."""
    switch = side.place.bin / LEAVES.name
    switch.touch()
    try:
        side.create()
        _, agent = side.opened()
        started = next(
            event for event in side.place.heard if event["event"] == "started" and event["pid"] == agent
        )
        began = time.monotonic()
        side.stop()
        seconds = time.monotonic() - began
        time.sleep(1)  # Those that are ended by the end of their terminal take a moment.
        left = [is_alive(pid) for pid in started["children"]]
        side.facts["children"] = {"same group": left[0], "own session": left[1], "seconds": round(seconds, 2)}
        for pid in started["children"]:
            kill(pid)
    except Failed as failure:
        side.failures["children"] = str(failure)
    finally:
        switch.unlink()


def kill_send(side: Side) -> None:
    """Kill a send half way, then send another text; keep what the agent got."""
    try:
        side.create()
        handle, _ = side.opened()
        half = median(side.samples.get("send") or [200.0]) / 2000
        since = len(side.place.read_record())
        first, second = "first text91 of two", "second text92 of two"
        running = side.place.start(side.program.send_argv(handle, first))
        time.sleep(half)
        running.kill()
        running.wait(30)
        try:
            insist(side, handle, second, since)
        except Failed as failure:
            side.failures["kill send"] = str(failure)
        time.sleep(2)  # A first text that comes after the second one is late, but not lost.
        heard = [event for event in side.place.read_record()[since:] if "text" in event]
        side.facts["kill send"] = {
            "first": verdict(heard, first),
            "second": verdict(heard, second),
        }
        side.measure("stop texts", side.stop, counts=False)
    except Failed as failure:
        side.failures["kill send"] = str(failure)


def verdict(heard: Sequence[dict[str, Any]], text: str) -> str:
    """Return in words how a text arrived."""
    fitting = [event for event in heard if is_heard(event, word_of(text))]
    exact = sum(is_exact(event, text) for event in fitting)
    if exact > 1:
        return f"arrived {exact} times"
    if exact:
        return "arrived"
    return "arrived together with another text" if fitting else "did not arrive"


def kill_manager(side: Side) -> None:
    """Kill the manager; keep what lives, what is listed, and whether a session can go on."""
    program = side.program
    try:
        side.create()
        handle, agent = side.opened()
        pids = program.manager_pids(agent)
        if not pids:
            return
        agents = side.place.agents()
        for pid in pids:
            kill(pid)
        time.sleep(2)  # Agents that lose their terminal with it take a moment to end.
        left = side.place.agents()
        facts: dict[str, Any] = {"ended": len(agents - left), "this one": agent in left}
        side.facts["kill manager"] = facts
        facts["recovered"] = attempt(lambda: program.recover(handle))
        listed = attempt_list(side, [*side.fleet, handle])
        facts["sessions"], facts["listed"] = len(side.fleet) + 1, listed
        since = len(side.place.read_record())
        text = "after the kill, text93"
        facts["send"] = attempt(lambda: insist(side, handle, text, since, 30))
    except Failed as failure:
        side.failures["kill manager"] = str(failure)


def attempt(act: Callable[[], object]) -> str:
    """Return "yes", or why not."""
    try:
        act()
    except Failed as failure:
        return str(failure)
    return "yes"


def attempt_list(side: Side, handles: Sequence[str]) -> int | str:
    """Return how many of the sessions are listed, or why nothing is."""
    try:
        text = side.program.list()
    except Failed as failure:
        return str(failure)
    return sum(side.program.is_listed(handle, text) for handle in handles)
