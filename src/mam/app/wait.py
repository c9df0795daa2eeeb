"""Wait for a session: until it is idle, working, waiting, has exited, or shows a text.

tmux tells when the pane prints, the kernel tells when the process ends, and the spool shows
what hooks wrote; between those, a slow look is the safety net.
"""

from __future__ import annotations

import re
import time

from mam.adapters.system import exits
from mam.app.read import read
from mam.app.sight import ALIVE, LOOSE, UNKNOWN, identity_of, see_one
from mam.app.status import status
from mam.core.activity import STATES
from mam.core.errors import PaneGone, TerminalsDown, TimedOut, Usage
from mam.core.row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.world import World

CONDITIONS = ("idle", "working", "waiting", "exited")
_STEP = 0.1


def wait(world: World, target: str, condition: str, *, timeout: float | None = None) -> dict[str, Any]:
    """Return the status once the condition holds; TimedOut, or PaneGone where it cannot hold any more."""
    pattern = _pattern(condition)
    deadline = None if timeout is None else time.monotonic() + timeout
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
        left = _STEP if deadline is None else min(_STEP, deadline - time.monotonic())
        if left <= 0:
            _give_up(row["name"], condition, timeout, sight.state)
        identity = identity_of(row)
        if identity is None:
            time.sleep(left)
        else:
            exits.wait_gone({identity}, left)


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
    return condition in STATES and status(world, target)["activity"] == condition


def _give_up(name: str, condition: str, timeout: float | None, state: str) -> None:
    if state == UNKNOWN:
        raise TerminalsDown(f"tmux did not answer while waiting for '{name}'")
    raise TimedOut(
        f"'{name}' was not {condition} within {timeout:g} s", hint=f"mam explain {name} says what it is"
    )
