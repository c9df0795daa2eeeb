"""Whether a root has the resident that it needs, and why not. Reads only."""

from __future__ import annotations

from mam.adapters.store.tables.resident_need import needs_resident
from mam.app.context import resident_start_and_lock as residents
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context

RUNNING, DOWN, OFF, NOT_NEEDED = "running", "down", "off", "not_needed"
# The line that a resident writes first; one that writes nothing more was killed.
STARTED = "the resident has started"


def resident_state(context: Context) -> dict[str, Any]:
    """Return `{state, version, since, reason, next_start_at}`.

    `reason` says what is wrong: of a resident that is down, of an older one, or of one with a task that
    fails. It is None while a resident is being started.
    """
    holder = residents.lock(context).holder()
    if holder is not None:
        since = holder.get("since")
        version, at = holder.get("version"), stamp(since) if isinstance(since, float | int) else None
        return _document(RUNNING, version=version, since=at, reason=_problem(holder))
    if not context.registry.peek(needs_resident, False):
        return _document(NOT_NEEDED)
    if context.settings().resident == "off":
        return _document(OFF)
    return _down(context)


def _problem(holder: dict[str, Any]) -> str | None:
    if residents.is_older(holder):
        return "it is of an older mam; the next changing command has a new one take its place"
    failing = holder.get("failing")
    return failing if isinstance(failing, str) else None


def _down(context: Context) -> dict[str, Any]:
    if (version := residents.newer_mam(context)) is not None:
        return _document(DOWN, reason=f"mam {version} has changed this root, so only that mam starts one")
    starts = context.user_state.resident_starts(context.root.verdict().id)
    is_resting = starts is not None and starts.is_resting(context.now())
    next_at = stamp(starts.next_at) if starts is not None and is_resting else None
    if starts is not None and starts.count == 1 and is_resting:
        return _document(DOWN, next_start_at=next_at)
    failed = "" if starts is None or starts.count == 1 else f"{starts.count} starts failed: "
    return _document(DOWN, reason=failed + _last_words(context), next_start_at=next_at)


def _last_words(context: Context) -> str:
    text = residents.resident_log(context).last_line()
    return "it ended without a word, as when it is killed" if not text or STARTED in text else text


def _document(state: str, **facts: str | None) -> dict[str, Any]:
    return {"state": state, "version": None, "since": None, "reason": None, "next_start_at": None, **facts}
