"""Whether a root has the resident that it needs, and why not. Reads only."""

from __future__ import annotations

import time

from mam.adapters.store.tables.resident_need import needs_resident
from mam.app.context import resident_start_and_lock as residents
from mam.app.context.settings_check import resident_setting
from mam.core.times import FORMAT, LAST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context

RUNNING, HUNG, DOWN, OFF, NOT_NEEDED = "running", "hung", "down", "off", "not_needed"
# The line that a resident writes first; one that writes nothing more was killed.
STARTED = "the resident has started"
# A resident that ends as it should writes last why. It may give way to another one.
ENDED, REPLACED = "the resident has ended: ", "another resident watches this root"
_KILLED = "the last one ended without a word, as when it is killed"
# After this time, a start that has written nothing has failed.
_START_SECONDS = 10.0


def resident_state(context: Context) -> dict[str, Any]:
    """Return `{state, version, since, reason, next_start_at}`.

    `reason` says what is wrong: of a resident that is down, of one that hangs, of an older one, or of one
    with a task that fails. It is None while a resident is being started.
    """
    if context.root.refusal() is not None:
        # No change is possible, so none can start one.
        return _document(NOT_NEEDED)
    holder = residents.lock_holder(context)
    if holder is not None:
        since = holder.get("since")
        version, at = holder.get("version"), _stamp(since) if isinstance(since, float | int) else None
        if (hang := residents.hang_of(context, holder)) is not None:
            return _document(HUNG, version=version, since=at, reason="; ".join(hang))
        return _document(RUNNING, version=version, since=at, reason=_problem(holder))
    if not context.registry.peek(needs_resident, False):
        return _document(NOT_NEEDED)
    if resident_setting(context) == "off":
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
    next_at = _stamp(starts.next_at) if starts is not None and is_resting else None
    words = _last_words(context)
    if starts is not None and _is_being_started(context, starts.at, words):
        return _document(DOWN, next_start_at=next_at)
    if words is None and starts is None:
        return _document(DOWN, reason="none has been started yet")
    failed = (
        "" if starts is None or starts.count == 1 else f"{starts.count} in a row did not run for a minute: "
    )
    return _document(DOWN, reason=failed + (words or _KILLED), next_start_at=next_at)


def _is_being_started(context: Context, since: float, words: str | None) -> bool:
    """Tell whether the resident that was started last has still to write its first line.

    Whoever starts the first one of a root makes an empty log, which is no word of any.
    """
    is_silent = words is None or residents.resident_log(context).changed_at() < since
    return is_silent and 0 <= context.now() - since < _START_SECONDS


def _last_words(context: Context) -> str | None:
    """Return how the last resident ended; None without a log."""
    text = residents.resident_log(context).last_line(begun_with=STARTED)
    if text is None:
        return None
    if STARTED in text or text.endswith(REPLACED):
        # Whoever took the place of the other has no word of its own in the log.
        return _KILLED
    return f"the last one has ended: {text.removeprefix(ENDED)}" if text.startswith(ENDED) else text


def _stamp(epoch: float) -> str:
    """Return what `core.times.stamp` returns, without datetime: every listing may need this."""
    return time.strftime(FORMAT, time.gmtime(min(max(epoch, 0), LAST)))


def _document(state: str, **facts: str | None) -> dict[str, Any]:
    return {"state": state, "version": None, "since": None, "reason": None, "next_start_at": None, **facts}
