"""The one word that a delegating agent reads: from the registry's status and what the session is doing.

The words are those that agents know from other multiplexers. `waiting` is `idle` with a flag, because
a caller acts the same: nothing moves until somebody does something.
"""

from __future__ import annotations

from mam.core.activity import BOOTING, EXITED, IDLE, WAITING, WORKING
from mam.core.session_row import Status

STATES = ("booting", "ready", "working", "idle", "done", "error", "unknown")
# What can be waited for.
TARGETS = ("ready", "working", "idle", "done", "error")
ENDED = ("done", "error")


def agent_state(
    status: str, activity: str, *, termination_mode: str | None = None, has_spoken: bool | None = None
) -> str:
    """Return the state; `has_spoken` is False only where a conversation is known to be empty still."""
    if status == Status.TERMINATED and termination_mode == "auto-detected":
        return "error"
    if status != Status.RUNNING:
        return "done"
    if activity == EXITED:
        return "error"
    if activity == IDLE and has_spoken is False:
        return "ready"
    words: dict[str, str] = {BOOTING: "booting", IDLE: "idle", WAITING: "idle", WORKING: "working"}
    return words.get(activity, "unknown")


def reached(state: str, wanted: str) -> bool:
    """Tell whether what was waited for is there; one that has had a turn takes words as a fresh one does."""
    return state == wanted or (wanted == "ready" and state == "idle")
