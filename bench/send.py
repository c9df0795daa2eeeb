"""Words to an agent at rest, from the call to the proof, beside a bare paste and Enter until its hook fires.

The practice agent shows what mam itself costs; Claude Code, against a model on loopback, what is added to a
real program. A crowd shows what many at once cost each other.
"""

from __future__ import annotations

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.conformance.desk import opened
from tests.conformance.install import Unavailable
from tests.conformance.stage import end_processes_of

import mam as api
from bench.measure import Budget, Row, Times, alternate, run, until
from bench.stage import Stage, mam

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam import Fleet, Session

PRACTICE, CLAUDE = "practice agent, bare paste until its hook", "Claude Code, bare paste until its hook"
_numbers = itertools.count(1)


def measure(quick: bool, tell: Callable[[str], None]) -> Iterator[Row]:
    """Send to the practice agent, to Claude Code, and to a crowd."""
    tell("sending to the practice agent")
    yield from _to_practice(3 if quick else 40)
    try:
        tell("sending to Claude Code")
        yield from _to_claude(2 if quick else 15)
    except Unavailable as reason:
        tell(f"claude is left out: {reason}")
    tell("sending to a crowd")
    yield _to_crowd(*(3, 3) if quick else (20, 20))


def words() -> str:
    """Return a text that was never sent before."""
    return f"message number {next(_numbers)}"


class Bare:
    """Pastes with tmux alone, and waits for the hook of the agent that was created by mam."""

    def __init__(self, stage: Stage, session: Session) -> None:
        self.stage, self.session = stage, session
        self.spool = Path(stage.root) / ".mam" / "spool"

    def send(self) -> float:
        """Return the seconds from the first call of tmux until the hook has written the prompt."""
        text, pane = words(), self.session.row["pane"]["id"]
        path = self.stage.folder / "words"
        path.write_text(text, encoding="utf-8")
        began = time.perf_counter()
        argv = self.stage.tmux_argv(
            "load-buffer", str(path), ";", "paste-buffer", "-p", "-r", "-d", "-t", pane
        )
        run([*argv, ";", "send-keys", "-t", pane, "Enter"], self.stage.environ)
        until(lambda: self._heard(text), "the hook")
        return time.perf_counter() - began

    def _heard(self, text: str) -> bool:
        for path in self.spool.glob(f"{self.session.id}.*.json"):
            try:
                if text in path.read_text(encoding="utf-8"):
                    return True
            except FileNotFoundError:
                continue
        return False


def by_api(fleet: Fleet, session: Session) -> float:
    """Return the seconds that one message takes, from the call to its receipt."""
    began = time.perf_counter()
    done = fleet.messages.send(session.id, words())
    seconds = time.perf_counter() - began
    if done["state"] not in ("submitted", "queued"):
        raise RuntimeError(f"it was not submitted: {done}")
    return seconds


def at_rest(session: Session, act: Callable[[], float | None]) -> Callable[[], float]:
    """Have an act begin with an agent that rests; only the act is timed."""

    def wait_and_act() -> float:
        session.wait("idle", timeout=30)
        began = time.perf_counter()
        own = act()
        return time.perf_counter() - began if own is None else own

    return wait_and_act


def _to_practice(rounds: int) -> Iterator[Row]:
    with Stage() as stage, api.open(str(stage.root), environ=stage.environ) as fleet:
        session = fleet.sessions.create("practice", name="bench", args=["--speed", "0"])
        bare = Bare(stage, session)

        def shell() -> None:
            run(mam("send", "bench", words(), "--workspace", str(stage.root)), stage.environ)

        found = alternate(
            rounds,
            {
                PRACTICE: at_rest(session, bare.send),
                "api": at_rest(session, lambda: by_api(fleet, session)),
                "shell": at_rest(session, shell),
            },
        )
    beside = found[PRACTICE]
    yield Row("send to the practice agent, in process", found["api"], PRACTICE, beside, Budget("ms", 60))
    yield Row(
        "mam send to the practice agent, from the shell", found["shell"], PRACTICE, beside, Budget("ms", 250)
    )


def _to_claude(rounds: int) -> Iterator[Row]:
    with Stage() as stage, pytest.MonkeyPatch.context() as patch:
        stage.move_in(patch)
        home = stage.folder / "home"
        with opened("claude", home, stage.server, stage.root, patch) as desk:
            session = desk.create("bench", prompt="hello")
            bare = Bare(stage, session)
            found = alternate(
                rounds,
                {
                    CLAUDE: at_rest(session, bare.send),
                    "api": at_rest(session, lambda: by_api(desk.fleet, session)),
                },
            )
            stage.tmux.kill_server(timeout=60)
            end_processes_of(home)
    yield Row("send to Claude Code, in process", found["api"], CLAUDE, found[CLAUDE], Budget("times", 3))


def _to_crowd(agents: int, messages: int) -> Row:
    """Have as many threads as agents send to one agent each, all at once."""
    with Stage() as stage, api.open(str(stage.root), environ=stage.environ) as fleet:
        sessions = [
            fleet.sessions.create("practice", name=f"bench-{number}", args=["--speed", "0"])
            for number in range(agents)
        ]
        alone = Times(
            tuple(at_rest(sessions[0], lambda: by_api(fleet, sessions[0]))() * 1000 for _ in range(3))
        )

        def send_all(session: Session) -> list[float]:
            with api.open(str(stage.root), environ=stage.environ) as own:
                return [_until_sent(own, session) for _ in range(messages)]

        with ThreadPoolExecutor(agents) as crew:
            times = [one * 1000 for some in crew.map(send_all, sessions) for one in some]
        heard = [
            turn for one in sessions for turn in one.transcript(turns=1000)["turns"] if turn["role"] == "user"
        ]
        if len(heard) < agents * messages or len({turn["text"] for turn in heard}) != len(heard):
            raise RuntimeError(f"of {agents * messages} messages {len(heard)} arrived")
    what = f"{agents} agents x {messages} messages at once, each message"
    return Row(what, Times(tuple(times)), "one message alone", alone)


def _until_sent(fleet: Fleet, session: Session) -> float:
    began = time.perf_counter()
    done = fleet.messages.send(session.id, words(), timeout=60)
    if done["state"] not in ("submitted", "queued"):
        raise RuntimeError(f"it was not submitted: {done}")
    return time.perf_counter() - began
