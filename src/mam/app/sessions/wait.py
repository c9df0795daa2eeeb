"""Wait for a session: until it is idle, working, waiting, has exited, or shows a text.

The kernel tells when the process ends, and a tmux whose control mode is safe tells when the pane
prints; looks in between are the safety net.
"""

from __future__ import annotations

import re
import select
import time

from mam.adapters.system.exit_watch import ExitWatch
from mam.adapters.tmux.control import ControlClient
from mam.app.context.liveness import ALIVE, LOOSE, UNKNOWN, identity_of, see_one
from mam.app.observation.ls import describe
from mam.app.observation.read import read
from mam.app.observation.status import status
from mam.core.errors import MamError, PaneGone, TerminalsDown, TimedOut, Usage
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from mam.app.context.context import World
    from mam.core.session_row import Row

CONDITIONS = ("idle", "working", "waiting", "exited")
# Seconds between looks: with a client that hears the pane, and without one.
_NET, _BLIND_NET = 1.0, 0.15
_LEAST = 0.03


def wait(world: World, target: str, condition: str, *, timeout: float | None = None) -> dict[str, Any]:
    """Return the status once the condition holds; TimedOut, or PaneGone where it cannot hold any more."""
    pattern = _pattern(condition)
    deadline = None if timeout is None else time.monotonic() + timeout
    with Wake(world, world.registry.view().find(target)) as wake:
        while True:
            row = world.registry.view().find(target)
            sight = see_one(world, row)
            ended = not is_running(row) or sight.state not in (ALIVE, LOOSE, UNKNOWN)
            if sight.state != UNKNOWN and _holds(world, target, condition, pattern, ended):
                return status(world, target)
            if ended:
                raise PaneGone(
                    f"'{row['name']}' has ended; it will not be {condition}", hint=f"mam resume {row['name']}"
                )
            left = wake.net() if deadline is None else min(wake.net(), deadline - time.monotonic())
            if left <= 0:
                raise _too_late(row["name"], condition, timeout, sight.state)
            wake.sleep(left)


class Wake:
    """Sleeps until something may have changed in one session."""

    def __init__(self, world: World, row: Row) -> None:
        """Listen to the pane's output and to the end of its process, as far as they are there."""
        self.exits = ExitWatch()
        self.control: ControlClient | None = None
        identity = identity_of(row)
        if identity is not None and is_running(row) and row.get("tmux_session_id"):
            self.exits.add(identity, None)
            try:
                self.control = ControlClient(
                    row["tmux_server"], row.get("tmux_session_id"), environ=world.environ
                )
            except MamError:
                # Not there, or a tmux whose control mode is not safe: looking more often will do.
                self.control = None

    def __enter__(self) -> Wake:
        """Use as a context: a client that stays must be let go."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of tmux and of the process."""
        self.exits.close()
        if self.control is not None:
            self.control.close()

    def net(self) -> float:
        """Return how long to sleep at most."""
        return _NET if self.control is not None else _BLIND_NET

    def sleep(self, seconds: float) -> None:
        """Return when something happened, or after so many seconds; never at once, to let bursts pass."""
        began = time.monotonic()
        poll = select.poll()
        poll.register(self.exits.fileno(), select.POLLIN)
        if self.control is not None:
            poll.register(self.control.fileno(), select.POLLIN)
        poll.poll(seconds * 1000)
        self.exits.poll(0)
        if self.control is not None:
            self._drain(self.control)
        time.sleep(max(0.0, min(seconds, _LEAST) - (time.monotonic() - began)))

    def _drain(self, control: ControlClient) -> None:
        try:
            control.events(0)
        except MamError:
            control.close()
            self.control = None


def _pattern(condition: str) -> re.Pattern[str] | None:
    if condition.startswith("text:"):
        try:
            return re.compile(condition[5:])
        except re.error as error:
            raise Usage(f"{condition[5:]!r} is not a regular expression: {error}") from None
    if condition not in CONDITIONS:
        raise Usage(f"cannot wait for {condition!r}", hint=f"wait for {', '.join(CONDITIONS)} or text:REGEX")
    return None


def _holds(world: World, target: str, condition: str, pattern: re.Pattern[str] | None, ended: bool) -> bool:
    if pattern is not None:
        return bool(pattern.search(read(world, target, scrollback=not ended)))
    if ended:
        return condition == "exited"
    view = world.registry.view()
    row = view.find(target)
    (found,) = describe(world, view, lambda one: one["name"] == row["name"], thorough=True)
    return bool(found["activity"] == condition)


def _too_late(name: str, condition: str, timeout: float | None, state: str) -> MamError:
    if state == UNKNOWN:
        return TerminalsDown(f"tmux did not answer while waiting for '{name}'")
    return TimedOut(
        f"'{name}' was not {condition} within {timeout:g} s", hint=f"mam explain {name} says what it is"
    )
