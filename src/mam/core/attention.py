"""Decide when a session needs a person, and say why. Pure."""

from __future__ import annotations

from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.times import short_age

WAITS_SECONDS = 120.0
IDLE_JOB_SECONDS = 900.0
SILENT_SECONDS = 3.0
WEDGED_SECONDS = 1800.0
LIMIT = "limit"


class Attention:
    """Why a session needs a person. `kind` names the episode, so that a person is told of it once."""

    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text


def attention(
    state: str, age: float, waiting_for: str | None, *, has_job: bool = False, is_silent: bool = False
) -> Attention | None:
    """Return why a session needs a person after `age` seconds in a state, or None if it does not.

    `is_silent`: mam reminded the session of its job, and the session is idle again without a report.
    """
    if state == WAITING and (waiting_for or "").startswith(LIMIT):
        return Attention("limit", f"it hit a limit: {waiting_for}")
    if state == WAITING and age >= WAITS_SECONDS:
        dialog = f" ({waiting_for})" if waiting_for else ""
        return Attention("waiting", f"it has waited for a person for {short_age(age)}{dialog}")
    if state == IDLE and has_job and is_silent and age >= SILENT_SECONDS:
        return Attention("silent-job", "it was reminded of its job, and is idle without a report")
    if state == IDLE and has_job and age >= IDLE_JOB_SECONDS:
        return Attention("idle-job", f"it has been idle for {short_age(age)} with an open job")
    if state == WORKING and age >= WEDGED_SECONDS:
        return Attention("wedged", f"it seems to work, but nothing has changed for {short_age(age)}")
    return None


def due_in(state: str, age: float, *, has_job: bool, is_silent: bool = False) -> float | None:
    """Return in how many seconds a session will need a person if nothing happens; None means never."""
    limits: dict[str, float | None] = {
        WAITING: WAITS_SECONDS,
        IDLE: (SILENT_SECONDS if is_silent else IDLE_JOB_SECONDS) if has_job else None,
        WORKING: WEDGED_SECONDS,
    }
    limit = limits.get(state)
    return None if limit is None else max(0.0, limit - age)
