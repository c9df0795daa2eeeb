"""The single state that a delegating agent reads, made of a session's status and activity.

The names of the states are those that agents know from other multiplexers. The activity `waiting` becomes
`idle` with a flag, because in both cases nothing happens until the caller acts.
"""

from __future__ import annotations

from mam.core.activity import BOOTING, EXITED, IDLE, WAITING, WORKING
from mam.core.session_row import Status

STATES = ("booting", "ready", "working", "idle", "done", "error", "unknown")
# States that a caller can wait for.
TARGETS = ("ready", "working", "idle", "done", "error")
ENDED = ("done", "error")


def agent_state(
    status: str, activity: str, *, termination_mode: str | None = None, has_spoken: bool | None = None
) -> str:
    """Return the state; `has_spoken` is False only if the conversation is known to be empty."""
    if status == Status.TERMINATED and termination_mode == "auto-detected":
        return "error"
    if status != Status.RUNNING:
        return "done"
    if activity == EXITED:
        return "error"
    if activity == IDLE and has_spoken is False:
        return "ready"
    states: dict[str, str] = {BOOTING: "booting", IDLE: "idle", WAITING: "idle", WORKING: "working"}
    return states.get(activity, "unknown")


def is_reached(state: str, target: str) -> bool:
    """Tell whether a state fulfils a target; `idle` fulfils `ready`, because both take a message."""
    return state == target or (target == "ready" and state == "idle")
