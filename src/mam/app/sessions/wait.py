"""Wait for a session: until it is idle, working, waiting, has exited, or shows a text.

The kernel reports the end of the process. mam polls for everything else.
"""

from __future__ import annotations

import re
import time

from mam.adapters.system.exit_watch import ExitWatch
from mam.app.context.liveness import check_liveness, identity_of
from mam.app.observation.conversations import way_to_continue
from mam.app.observation.hook_intake import take_in
from mam.app.observation.read import read
from mam.app.observation.status import add_details, look, status
from mam.core.activity import EXITED, IDLE, WAITING, WORKING
from mam.core.errors import MamError, PaneGone, TerminalsDown, TimedOut, Usage
from mam.core.liveness_values import Liveness
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.session_row import Row

CONDITIONS = (IDLE, WORKING, WAITING, EXITED)
_LOOK_SECONDS = 0.15


def wait(context: Context, target: str, condition: str, *, timeout: float | None = None) -> dict[str, Any]:
    """Return the status once the condition holds. Raise TimedOut, or PaneGone if it can no longer hold.

    Raises RootMissing if the state of the root goes meanwhile.
    """
    pattern = _pattern(condition)
    with context.noticing_lost_state():
        context.require_own_root()
        return _wait(context, target, condition, pattern, timeout)


def _wait(
    context: Context, target: str, condition: str, pattern: re.Pattern[str] | None, timeout: float | None
) -> dict[str, Any]:
    deadline = None if timeout is None else time.monotonic() + timeout
    with _Pause(context.view_to_show().find(target)) as pause:
        while True:
            context.require_state()
            take_in(context)
            row = context.view_to_show().find(target)
            liveness = check_liveness(context, row)
            has_ended = not is_running(row) or liveness.state not in (
                Liveness.ALIVE,
                Liveness.LOOSE,
                Liveness.UNKNOWN,
            )
            if liveness.state != Liveness.UNKNOWN and (
                document := _status_if_met(context, target, condition, pattern, has_ended)
            ):
                return document
            if has_ended:
                raise PaneGone(
                    f"'{row['name']}' has ended, so it will not be {condition}",
                    hint=way_to_continue(context, row),
                )
            remaining = _LOOK_SECONDS if deadline is None else min(_LOOK_SECONDS, deadline - time.monotonic())
            if remaining <= 0:
                raise _timeout_error(row["name"], condition, timeout, liveness.state)
            pause.sleep(remaining)


class _Pause:
    """A sleep that ends early when the process of one session ends."""

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


def _status_if_met(
    context: Context, target: str, condition: str, pattern: re.Pattern[str] | None, has_ended: bool
) -> dict[str, Any] | None:
    """Return the very status in which the condition held, because a later look may show another one."""
    if pattern is not None:
        holds = pattern.search(read(context, target, scrollback=not has_ended))
        return status(context, target) if holds else None
    if has_ended:
        return status(context, target) if condition == EXITED else None
    document = look(context, target)
    return add_details(context, document) if document["activity"] == condition else None


def _timeout_error(name: str, condition: str, timeout: float | None, state: str) -> MamError:
    if state == Liveness.UNKNOWN:
        return TerminalsDown(f"tmux did not answer while waiting for '{name}'")
    return TimedOut(
        f"'{name}' was not {condition} within {timeout:g} s", hint=f"mam explain {name} shows its activity"
    )
