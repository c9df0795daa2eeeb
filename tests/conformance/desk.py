"""A fleet with a real agent program, a model on loopback, and what a person at the terminal can do.

How a program is started and spoken to is in its file in `programs/`; one set of scenarios is for all of them
(`test_life.py`).
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.conformance.install import installed
from tests.conformance.launch import guard
from tests.conformance.model_server import ModelServer
from tests.conformance.own_tools import ModelWithOwnTools
from tests.conformance.program import PROGRAMS
from tests.waiting import wait_until

import mam
from mam.adapters.tmux.client import Tmux
from mam.adapters.tmux.error_translation import PaneChanged
from mam.app.observation import conversations
from mam.app.observation.pane_look import look_at_pane
from mam.core.errors import MamError

# Not one of mam's own names: those are taken away from every test.
VERSION = "CONFORMANCE_VERSION"
VERSIONS = {kind: program.install.version for kind, program in PROGRAMS.items()}
WORD = "remember the word xylophone"


def is_busy() -> bool:
    """Tell whether the machine has other work: now, or in the last minute."""
    load, runnable = Path("/proc/loadavg").read_text(encoding="ascii").split()[0:4:3]
    cores = os.cpu_count() or 1
    return float(load) >= 2 * cores or int(runnable.partition("/")[0]) > cores


def wait_promptly(condition: Callable[[], Any], what: Callable[[], str], allowed: float = 1.0) -> None:
    """Wait for a second, and for longer if the machine was seen busy in it."""
    was_busy = False

    def seen() -> bool:
        nonlocal was_busy
        was_busy = was_busy or is_busy()
        return bool(condition())

    try:
        wait_until(seen, what, allowed)
    except AssertionError:
        if not was_busy:
            raise
        wait_until(condition, what)


def wait_for(condition: Callable[[], Any], what: str | Callable[[], str], timeout: float = 20.0) -> None:
    wait_until(condition, what, timeout)


class Desk:
    """A fleet, a model, and what a person at the terminal can do."""

    def __init__(self, kind: str, fleet: mam.Fleet, model: ModelServer, home: Path, server: str) -> None:
        self.kind, self.fleet, self.model, self.home = kind, fleet, model, home
        self.workspace = Path(fleet.root)
        self.tmux = Tmux(server)
        self.program = PROGRAMS[kind]
        self._worker: mam.Session | None = None
        self._made = 0
        self._interrupted = 0.0

    def create(self, name: str, **options: Any) -> mam.Session:
        usual = {"permissions": self.program.permissions, "timeout": self.program.ready_timeout}
        given = {"name": name, **usual, **options}
        try:
            return self.fleet.sessions.create(
                self.kind, args=[*self.arguments(), *given.pop("args", [])], **given
            )
        except MamError as error:
            with suppress(MamError):
                error.add_note(f"the screen:\n{self.fleet.sessions.get(name).read()}")
            raise

    def arguments(self) -> list[str]:
        """Return the words after `--` that point the program at the model."""
        return self.program.launch_by_mam(self.model.url, self.home, self.workspace).arguments

    def worker(self, *, fresh: bool = False) -> mam.Session:
        """Return the session that the scenarios share, at rest; another one where the last is not."""
        self.model.forget_script()
        if self._worker is not None and (fresh or not self._is_at_rest(self._worker)):
            self.discard()
        if self._worker is None:
            self._made += 1
            # Kept before anything is asked of it, so that one that fails is discarded as well.
            self._worker = self.create(f"worker-{self._made}", prompt=WORD)
            self.rests(self._worker)
        return self._worker

    def _is_at_rest(self, session: mam.Session) -> bool:
        try:
            wait_for(lambda: session.status()["activity"] == "idle", "rest")
        except (AssertionError, MamError):
            return False
        return True

    def discard(self) -> None:
        """Give up the shared session: a scenario left it in a state that nobody knows."""
        if self._worker is not None:
            with suppress(MamError):
                self._worker.stop(force=True)
        self._worker = None

    def say(self, session: mam.Session, text: str, *, is_command: bool = False) -> None:
        """Type into the box as a person does; words are seen to reach the model."""
        before = len(self.model.turns())
        row = self.fleet.sessions.get(session.id).row
        self.tmux.paste(row["pane"]["id"], text, mark=session.id, enter=True, pause=self.program.pause)
        if not is_command:
            wait_for(
                lambda: len(self.model.turns()) > before or self._enter_again(session, row),
                lambda: f"a turn for {text!r}: {session.read()}",
                30,
            )
        elif text == self.program.clear and self.program.confirm_clear is not None:
            self.becomes(session, "waiting", "confirm")
            self.press(session, self.program.confirm_clear)

    def _enter_again(self, session: mam.Session, row: Any) -> bool:
        """Press Enter again, as a person does, where a program that stood still took it for a new line."""
        context = self.fleet._access.context
        look = look_at_pane(context, row) if context.kind(self.kind).early_enter_makes_new_line else None
        if look is not None and look.screen_state.is_on_new_line:
            with suppress(PaneChanged):
                self.tmux.keys(look.pane_id, ["Enter"], mark=session.id, at=look.cursor)
        return False

    def box(self, session: mam.Session) -> str | None:
        """Return what the input box has: `empty`, `draft`, or None where it is not seen."""
        row = self.fleet.sessions.get(session.id).row
        return look_at_pane(self.fleet._access.context, row).screen_state.box

    def press(self, session: mam.Session, *keys: str) -> None:
        pane = self.fleet.sessions.get(session.id).row["pane"]["id"]
        for key in keys:
            if key == "C-c":
                # Hermes takes a second one within two seconds for the wish to leave.
                time.sleep(max(0.0, self._interrupted + 2.5 - time.monotonic()))
                self._interrupted = time.monotonic()
            self.tmux.keys(pane, [key], mark=session.id)
            if len(keys) > 1:
                time.sleep(0.3)

    def becomes(
        self, session: mam.Session, activity: str, waiting_for: str | None = None, *, after: float = 0.0
    ) -> None:
        """Both the quick listing and the thorough status say so, soon; `after` so long at most."""

        def shown() -> bool:
            (listed,) = [one for one in self.fleet.sessions.ls()["sessions"] if one["id"] == session.id]
            both = (listed, session.status())
            return all((one["activity"], one["waiting_for"]) == (activity, waiting_for) for one in both)

        wait_promptly(
            shown,
            lambda: f"{activity} {waiting_for}: {json.dumps(session.explain(), indent=1)}\n{session.read()}",
            1.0 + after,
        )

    def rests(self, session: mam.Session) -> None:
        """The turn is over, on the screen, in its record, and by every other word as well."""

        def is_over() -> bool:
            found = session.explain()
            states = {one["source"]: one["state"] for one in found["evidence"] if one["source"] != "process"}
            # The screen is at rest before there is a record, and without one there is no conversation yet.
            if found["activity"] != "idle" or not set(states.values()) <= {"idle", "unknown"}:
                return False
            if self.program.is_recorded:
                return states.get("transcript") == "idle"
            return self.own(session) is not None

        wait_for(is_over, lambda: f"rest: {json.dumps(session.explain(), indent=1)}\n{session.read()}", 30)
        self.becomes(session, "idle")

    def sees(self, session: mam.Session, source: str, state: str) -> None:
        """One source says so; the others may not have noticed yet."""
        wait_for(lambda: said(session, source) == state, lambda: f"{source} {state}: {session.explain()}")

    def settles(self, session: mam.Session) -> None:
        """A dialog can be answered: a hook may speak before it is drawn."""
        self.sees(session, "screen", "waiting")
        # One just drawn does not take keys yet, and nothing shows when it does.
        time.sleep(0.5)

    def capture(self, session: mam.Session) -> Any:
        return conversations.record_conversation(
            self.fleet._access.context, self.fleet.sessions.get(session.id).row
        )

    def own(self, session: mam.Session) -> str | None:
        """Return the id of the session's own conversation, taken in as any changing verb does."""
        return mam_own_id(self.capture(session))

    def kill(self, session: mam.Session) -> None:
        """End the agent as a crash does, and every process of it."""
        row = self.fleet.sessions.get(session.id).row
        from mam.adapters.system import process
        from mam.app.context.liveness import identity_of

        identity = identity_of(row)
        assert identity is not None
        for one in process.tree(identity, None):
            process.signal(one, signal.SIGKILL)
        self.becomes(session, "exited")


def mam_own_id(row: Any) -> str | None:
    from mam.core.session_row import own_id

    return own_id(row)


def said(session: mam.Session, source: str) -> str | None:
    return next((one["state"] for one in session.explain()["evidence"] if one["source"] == source), None)


def version_under_test(kind: str) -> str:
    """Return the version that is asked for, else the one that the facts were seen with."""
    return os.environ.get(VERSION) or VERSIONS[kind]


def executable_of(kind: str) -> Path:
    """Return the program in the version under test; raises `Unavailable` where it cannot be had."""
    return installed(kind, version_under_test(kind))


@contextmanager
def opened(kind: str, home: Path, server: str, workspace: Path, patch: Any) -> Iterator[Desk]:
    """Give a desk in this home; raises `Unavailable` where the program cannot be had."""
    executable = executable_of(kind)
    program = PROGRAMS[kind]
    with ModelWithOwnTools(program) as model:
        launch = program.launch_by_mam(model.url, home, workspace)
        launch.write(home, anew=True)
        environment = launch.variables() | guard(model)
        for name, value in {"PATH": f"{executable.parent}:{os.environ['PATH']}", **environment}.items():
            patch.setenv(name, value)
        program.trust(home, workspace)
        vouch(home, kind)
        with mam.open(str(workspace)) as fleet:
            yield Desk(kind, fleet, model, home, server)


def vouch(home: Path, kind: str) -> None:
    """Let the version under test count as one that was tested: that is what is being found out."""
    version = version_under_test(kind)
    if version != VERSIONS[kind]:
        config = home / ".config" / "mam" / "config.toml"
        with config.open("a", encoding="utf-8") as file:
            file.write(f'known_versions = ["{kind} {version}"]\n')
