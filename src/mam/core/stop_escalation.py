"""Decide how a stop begins and how it escalates. Pure.

A stop begins with the gentlest method that is safe, and continues with the next stronger one. To ask an
agent to exit means to type. Typing is safe only if the screen shows an empty input box: in a dialog, Enter
approves; after a draft, Enter submits what a person was writing.
"""

from __future__ import annotations

from mam.core.session_row import Status

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.core.session_row import Row

# From the gentlest to the strongest: exit word or Ctrl-C, closed pane (SIGHUP), SIGKILL.
ASK, HANG_UP, KILL = "ask", "hang up", "kill"

# How the end of a session is recorded, by the method that ended it: `termination_mode` of a row. A session
# whose process was gone already has the last one.
MODES = {ASK: "graceful", HANG_UP: "pane-closed", KILL: "forced"}
FOUND = "auto-detected"

# Seconds that each method may take before the next one is due.
GRACE = {ASK: 3.0, HANG_UP: 5.0, KILL: 5.0}

# Seconds that processes which an ended agent left get to end: by themselves, and after a SIGTERM. The end of
# the agent and of its terminal sends them no signal if they are in another process group.
FOLLOW_SECONDS, TERMINATE_SECONDS = 0.3, 1.0


class Step:
    """A method with its reason. ASK either types the exit word `types` or presses the key `presses`."""

    __slots__ = ("method", "presses", "reason", "types")

    def __init__(
        self, method: str, reason: str, types: str | None = None, presses: str | None = None
    ) -> None:
        self.method = method
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
    """Return the first step of a stop."""
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
            "it is busy" if is_busy else "its input box is not empty" if box else "no input box is visible",
        )
    if ends_on_interrupt:
        return Step(ASK, "it has no exit word", presses="C-c")
    return Step(HANG_UP, "it has no exit word")


def already_ended(row: Row) -> str:
    """Return the note of a stop whose session has already ended."""
    times = [row.get("terminated_at"), row.get("stopped_at")]
    if row["status"] == Status.STOPPED:
        times.reverse()
    time = times[0] or times[1] or "unknown time"
    cause = row.get("stop_reason") or row.get("termination_mode")
    return f"already {row['status']} ({time}{f', {cause}' if cause else ''})"
