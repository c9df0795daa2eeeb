"""Text and Enter into an agent's box, each right after a look and only while that look still holds.

tmux itself compares the cursor with where it was seen, in the same step in which it types. An agent at rest
gets text and Enter at once, where the program takes that. Else Enter follows once the text is seen in the
box, and only while nothing else has opened: some programs take one that comes too soon for a part of the
text, and one that works may open a dialog at any time.
"""

from __future__ import annotations

import time

from mam.adapters.tmux.failures import PaneChanged
from mam.app.glance import glance
from mam.core.activity import IDLE
from mam.core.errors import DeliveryUnconfirmed, PaneGone, TerminalsDown, Unavailable
from mam.core.message import not_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.adapters.agents.protocol import Look
    from mam.app.glance import Glance
    from mam.app.world import World
    from mam.core.row import Row

    # Says why nothing may be typed into what was seen, or None.
    Check = Callable[[Look], str | None]

_SEEN_SECONDS = 5.0
_STEP = 0.02
# How often a screen that moves is looked at before it is left alone.
_MOST_LOOKS = 10
# A list of commands opens while one is typed, and must have.
_COMMAND_PAUSE = 0.3


class InTheWay(PaneGone):
    """Something is in the way; nothing was typed."""

    code = "in_the_way"


def submit(
    world: World, row: Row, text: str, check: Check | None = None, *, is_command: bool = False
) -> Look:
    """Type a text into the session's empty box and press Enter; return what was seen before that.

    Raises InTheWay, or what a paste raises, where nothing was typed, and DeliveryUnconfirmed where the text
    stands there without its Enter.
    """
    kind, tmux = world.kind(row["agent"]), world.tmux(row["tmux_server"])
    pane_id, pause = row["pane"]["id"], kind.pause(text)
    if is_command:
        pause = max(pause, _COMMAND_PAUSE)
    for _ in range(_MOST_LOOKS):
        seen = _look(world, row, check or _not_empty)
        at_once = pause <= 0 and seen.look.state == IDLE
        try:
            tmux.paste(pane_id, text, mark=row["id"], enter=at_once, at=seen.cursor)
        except PaneChanged:
            continue
        if not at_once:
            _enter(world, row, pause)
        return seen.look
    raise InTheWay("its screen does not stand still")


def proof_seconds(text: str) -> float:
    """Return how long the agent's own record may take to show a text: Gemini needed 13 s for 200 KB."""
    return 10.0 + len(text) / 5000


def _look(world: World, row: Row, check: Check) -> Glance:
    seen = glance(world, row)
    reason = not_there(seen.absence) if seen.absence else check(seen.look)
    if reason:
        raise InTheWay(reason)
    return seen


def _not_empty(look: Look) -> str | None:
    return None if look.box == "empty" and look.dialog is None else "its box is not empty"


def _enter(world: World, row: Row, pause: float) -> None:
    """Press Enter once the text is seen in the box, and only while that is all that is seen."""
    deadline = time.monotonic() + _SEEN_SECONDS
    while not _holds_text(seen := glance(world, row)):
        if seen.absence:
            # What was typed is gone with the agent, and Enter was not pressed.
            raise InTheWay(f"{not_there(seen.absence)} before Enter was pressed")
        if time.monotonic() > deadline:
            raise _not_entered(row, "it is not seen in its box")
        time.sleep(_STEP)
    time.sleep(pause)
    tmux = world.tmux(row["tmux_server"])
    for _ in range(_MOST_LOOKS):
        seen = glance(world, row)
        if seen.absence:
            raise InTheWay(f"{not_there(seen.absence)} before Enter was pressed")
        if not _holds_text(seen):
            raise _not_entered(row, f"its {seen.look.dialog or 'screen'} came in between")
        try:
            tmux.keys(row["pane"]["id"], ["Enter"], mark=row["id"], at=seen.cursor)
        except PaneChanged:
            continue
        except TerminalsDown:
            # It may have been pressed.
            raise
        except Unavailable as error:
            raise _not_entered(row, error.message) from error
        return
    raise _not_entered(row, "its screen does not stand still")


def _holds_text(seen: Glance) -> bool:
    return seen.look.dialog is None and seen.look.box == "draft"


def _not_entered(row: Row, why: str) -> DeliveryUnconfirmed:
    return DeliveryUnconfirmed(
        f"the text was typed into '{row['name']}' and Enter was not pressed: {why}",
        hint=f"look: mam read {row['name']}",
        session=row,
    )
