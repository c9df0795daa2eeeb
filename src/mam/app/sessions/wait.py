"""Wait for a session: until it is idle, working, waiting, has exited, or shows a text.

The kernel tells when the process ends; everything else is seen by looking again and again.
"""

from __future__ import annotations

import re
import time

from mam.adapters.system.exit_watch import ExitWatch
from mam.app.context.liveness import identity_of, see_one
from mam.app.observation.hook_intake import take_in
from mam.app.observation.read import read
from mam.app.observation.status import completed, look, status
from mam.core.activity import EXITED, IDLE, WAITING, WORKING
from mam.core.errors import MamError, PaneGone, TerminalsDown, TimedOut, Usage
from mam.core.liveness import Liveness
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.session_row import Row

CONDITIONS = (IDLE, WORKING, WAITING, EXITED)
_LOOK_SECONDS = 0.15


def wait(context: Context, target: str, condition: str, *, timeout: float | None = None) -> dict[str, Any]:
    """Return the status once the condition holds; TimedOut, or PaneGone where it cannot hold any more."""
    pattern = _pattern(condition)
    deadline = None if timeout is None else time.monotonic() + timeout
    with _Pause(context.registry.view().find(target)) as pause:
        while True:
            take_in(context)
            row = context.registry.view().find(target)
            sight = see_one(context, row)
            ended = not is_running(row) or sight.state not in (
                Liveness.ALIVE,
                Liveness.LOOSE,
                Liveness.UNKNOWN,
            )
            if sight.state != Liveness.UNKNOWN and (
                found := _seen(context, target, condition, pattern, ended)
            ):
                return found
            if ended:
                raise PaneGone(
                    f"'{row['name']}' has ended; it will not be {condition}", hint=f"mam resume {row['name']}"
                )
            left = _LOOK_SECONDS if deadline is None else min(_LOOK_SECONDS, deadline - time.monotonic())
            if left <= 0:
                raise _too_late(row["name"], condition, timeout, sight.state)
            pause.sleep(left)


class _Pause:
    """Sleeps until the process of one session ends, or for some time."""

    def __init__(self, row: Row) -> None:
        self._exits = ExitWatch()
        identity = identity_of(row)
        if identity is not None and is_running(row) and row.get("tmux_session_id"):
            self._exits.add(identity, None)

    def __enter__(self) -> _Pause:
        return self

    def __exit__(self, *error: object) -> None:
        self._exits.close()

    def sleep(self, seconds: float) -> None:
        self._exits.poll(seconds)


def _pattern(condition: str) -> re.Pattern[str] | None:
    if condition.startswith("text:"):
        try:
            return re.compile(condition[5:])
        except re.error as error:
            raise Usage(f"{condition[5:]!r} is not a regular expression: {error}") from None
    if condition not in CONDITIONS:
        raise Usage(f"cannot wait for {condition!r}", hint=f"wait for {', '.join(CONDITIONS)} or text:REGEX")
    return None


def _seen(
    context: Context, target: str, condition: str, pattern: re.Pattern[str] | None, ended: bool
) -> dict[str, Any] | None:
    """Return the status in which the condition was seen to hold; a later look may show another one."""
    if pattern is not None:
        holds = pattern.search(read(context, target, scrollback=not ended))
        return status(context, target) if holds else None
    if ended:
        return status(context, target) if condition == EXITED else None
    found = look(context, target)
    return completed(context, found) if found["activity"] == condition else None


def _too_late(name: str, condition: str, timeout: float | None, state: str) -> MamError:
    if state == Liveness.UNKNOWN:
        return TerminalsDown(f"tmux did not answer while waiting for '{name}'")
    return TimedOut(
        f"'{name}' was not {condition} within {timeout:g} s", hint=f"mam explain {name} says what it is"
    )
