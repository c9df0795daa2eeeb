"""Text and Enter into an agent's box, each right after a look and only while that look still holds.

tmux itself compares the cursor with where it was seen, in the same step in which it types. An agent at rest
gets text and Enter at once, where the program takes that. Else Enter follows once the text is seen in the
box, and only while nothing else has opened: some programs take one that comes too soon for a part of the
text, and one that works may open a dialog at any time.
"""

from __future__ import annotations

import time

from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux.failures import PaneChanged, PaneInMode
from mam.app.observation.hook_reports import COARSE_SECONDS, newest_reports
from mam.app.observation.pane_look import SHELL, glance, look_until_clear
from mam.core.activity import IDLE, WAITING, WORKING
from mam.core.errors import DeliveryUnconfirmed, PaneGone, TerminalsDown, Unavailable
from mam.core.liveness import Liveness
from mam.core.message import WAITS, not_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.adapters.agents.kind import ScreenState
    from mam.app.context.context import Context
    from mam.app.observation.pane_look import PaneLook
    from mam.core.session_row import Row

    # Says why nothing may be typed into what was seen, or None.
    Check = Callable[[ScreenState], str | None]

_SEEN_SECONDS = 5.0
_STEP = 0.02
# How long a screen that moves is looked at before it is left alone.
_STILL_SECONDS = 2.0
# A list of commands opens while one is typed, and must have.
_COMMAND_PAUSE = 0.3


class InTheWay(PaneGone):
    """Something is in the way; nothing was typed."""

    code = "in_the_way"


def submit(
    context: Context,
    row: Row,
    text: str,
    check: Check | None = None,
    *,
    is_command: bool = False,
    is_resting: bool = True,
) -> ScreenState:
    """Type a text into the session's empty box and press Enter; return what was seen before that.

    `is_resting`: nobody says that it works, whatever its screen shows. Raises InTheWay, or what a paste
    raises, where nothing was typed, and DeliveryUnconfirmed where the text stands there without its Enter.
    """
    kind, tmux = context.kind(row["agent"]), context.tmux(row["tmux_server"])
    pane_id, pause = row["pane"]["id"], kind.pause(text)
    if is_command:
        pause = max(pause, _COMMAND_PAUSE)
    since = context.now() - COARSE_SECONDS
    deadline = Deadline(_STILL_SECONDS)
    while True:
        seen = _look(context, row, check or _not_empty, since)
        at_once = pause <= 0 and is_resting and seen.look.state == IDLE
        try:
            tmux.paste(pane_id, text, mark=row["id"], enter=at_once, at=seen.cursor)
        except PaneChanged:
            if not deadline.pause(_STEP):
                raise InTheWay("its screen does not stand still") from None
            continue
        if at_once:
            return seen.look
        # Its screen may have been behind, and some programs show with a draft no more that they work.
        entered = _enter(context, row, pause, since)
        return entered if entered.state == WORKING else seen.look


def proof_seconds(text: str) -> float:
    """Return how long the agent's own record may take to show a text: Gemini needed 13 s for 200 KB."""
    return 10.0 + len(text) / 5000


def _look(context: Context, row: Row, check: Check, since: float) -> PaneLook:
    seen = look_until_clear(lambda: glance(context, row))
    reason = not_there(seen.absence) if seen.absence else check(seen.look)
    if reason is None and seen.look.state != IDLE and _asks(context, row, seen, since):
        reason = WAITS
    if reason:
        raise InTheWay(reason)
    return seen


def _not_empty(look: ScreenState) -> str | None:
    return None if look.box == "empty" and look.dialog is None else "its box is not empty"


def _enter(context: Context, row: Row, pause: float, since: float) -> ScreenState:
    """Press Enter once the text is seen in the box, and only while that is all that is seen."""
    deadline = Deadline(_SEEN_SECONDS)
    while not _holds_text(context, row, seen := _look_for_text(context, row, deadline), since):
        _wait(row, deadline, "it is not seen in its box")
    time.sleep(pause)
    deadline = Deadline(_SEEN_SECONDS)
    while True:
        seen = _look_for_text(context, row, deadline)
        if seen.look.dialog:
            raise _not_entered(row, f"its {seen.look.dialog} came in between")
        if _holds_text(context, row, seen, since) and _press_enter(context, row, seen):
            return seen.look
        _wait(row, deadline, "its screen does not stand still")


def _look_for_text(context: Context, row: Row, deadline: Deadline) -> PaneLook:
    """Look at an agent that was typed to; InTheWay where it is gone, and what was typed with it."""
    while (absence := (seen := glance(context, row)).absence) is not None:
        if absence not in (Liveness.UNKNOWN, SHELL):
            raise InTheWay(f"{not_there(absence)} before Enter was pressed")
        # The agent may be there all the same, and the text in its box.
        _wait(row, deadline, not_there(absence))
    return seen


def _press_enter(context: Context, row: Row, seen: PaneLook) -> bool:
    """Press Enter; False where what was seen is not there any more."""
    try:
        context.tmux(row["tmux_server"]).keys(row["pane"]["id"], ["Enter"], mark=row["id"], at=seen.cursor)
    except (PaneChanged, PaneInMode):
        return False
    except TerminalsDown:
        # It may have been pressed.
        raise
    except Unavailable as error:
        raise _not_entered(row, error.message) from error
    return True


def _wait(row: Row, deadline: Deadline, why: str) -> None:
    if not deadline.pause(_STEP):
        raise _not_entered(row, why)


def _holds_text(context: Context, row: Row, seen: PaneLook, since: float) -> bool:
    """Tell whether the text is in the box; a look between two parts of one drawing shows nothing."""
    return seen.look.dialog is None and seen.look.box == "draft" and not _asks(context, row, seen, since)


def _asks(context: Context, row: Row, seen: PaneLook, since: float) -> bool:
    """Tell whether the agent's own word since then is that it asks: its dialog may not be drawn yet."""
    title = seen.sight.pane.title if seen.sight.pane else ""
    if context.kind(row["agent"]).read_title(title) == WAITING:
        return True
    report = newest_reports(context, [row]).get(row["id"])
    return report is not None and report.at >= since and report.data["state"] == WAITING


def _not_entered(row: Row, why: str) -> DeliveryUnconfirmed:
    return DeliveryUnconfirmed(
        f"the text was typed into '{row['name']}' and Enter was not pressed: {why}",
        hint=f"look: mam read {row['name']}",
        session=row,
    )
