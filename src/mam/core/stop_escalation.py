"""How a stop escalates, decided without touching a process.

A stop begins at the gentlest rung that is safe and climbs from there. Asking means typing, and
typing is safe only into an empty input box that was seen just now: in a dialog, Enter approves;
after a draft, it submits what a person was writing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.session_row import Row

ASK, HANG_UP, KILL = "ask", "hang up", "kill"

# Seconds that each rung may take before the next one is due.
GRACE = {ASK: 3.0, HANG_UP: 5.0, KILL: 5.0}


class Step:
    """A rung with its reason; `types` is the exit word, `presses` the key, of an ask."""

    __slots__ = ("presses", "reason", "rung", "types")

    def __init__(self, rung: str, reason: str, types: str | None = None, presses: str | None = None) -> None:
        self.rung = rung
        self.reason = reason
        self.types = types
        self.presses = presses


def first_step(
    *,
    force: bool,
    exit_word: str | None,
    ends_on_interrupt: bool,
    box: str | None,
    dialog: str | None,
    is_busy: bool,
    in_mode: bool,
) -> Step:
    """Return where a stop begins."""
    if force:
        return Step(KILL, "forced")
    if dialog:
        return Step(HANG_UP, f"its {dialog} dialog is open")
    if in_mode:
        return Step(HANG_UP, "its pane is in copy mode")
    if exit_word:
        if box == "empty" and not is_busy:
            return Step(ASK, "its input box is empty", types=exit_word)
        return Step(
            HANG_UP,
            "it is busy" if is_busy else "its input box is not empty" if box else "no input box is seen",
        )
    if ends_on_interrupt:
        return Step(ASK, "it has no exit word", presses="C-c")
    return Step(HANG_UP, "it has no exit word")


def already(row: Row) -> str:
    """Return what a stop of an ended session says."""
    when = row.get("stopped_at") or row.get("terminated_at") or "unknown time"
    why = row.get("stop_reason") or row.get("termination_mode")
    return f"already {row['status']} ({when}{f', {why}' if why else ''})"
