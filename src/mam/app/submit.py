"""Text and Enter into an agent's box: in one step where the program takes it so, else with a look in between.

Some programs take an Enter that comes too soon for a part of the text. There it is pressed once the text
is seen in the box, and only while nothing else has opened.
"""

from __future__ import annotations

import time

from mam.adapters.agents.protocol import Screen
from mam.core.errors import DeliveryUnconfirmed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.protocol import Look
    from mam.app.world import World
    from mam.core.row import Row

_SEEN_SECONDS = 5.0
_STEP = 0.02


def submit(world: World, row: Row, text: str) -> None:
    """Type a text into the session's empty box and press Enter.

    Raises what a paste raises, and DeliveryUnconfirmed where the text stands there without its Enter.
    """
    kind, tmux = world.kind(row["agent"]), world.tmux(row["tmux_server"])
    pane_id, pause = row["pane"]["id"], kind.pause(text)
    if pause <= 0 or not kind.reads_screen:
        tmux.paste(pane_id, text, mark=row["id"], enter=True, pause=pause)
        return
    tmux.paste(pane_id, text, mark=row["id"], enter=False)
    deadline = time.monotonic() + _SEEN_SECONDS
    while not _holds_text(look_at(world, row)):
        if time.monotonic() > deadline:
            raise _not_entered(row, "it is not seen in its box")
        time.sleep(_STEP)
    time.sleep(pause)
    if not _holds_text(look_at(world, row)):
        raise _not_entered(row, "something else opened")
    tmux.keys(pane_id, ["Enter"], mark=row["id"])


def proof_seconds(text: str) -> float:
    """Return how long the agent's own record may take to show a text: Gemini needed 13 s for 200 KB."""
    return 10.0 + len(text) / 5000


def look_at(world: World, row: Row) -> Look:
    """Return what the session's screen shows now."""
    seen = world.tmux(row["tmux_server"]).look(row["pane"]["id"])
    return world.kind(row["agent"]).look(Screen(seen.screen, seen.cursor_x, seen.cursor_y))


def _holds_text(look: Look) -> bool:
    return look.dialog is None and look.box == "draft"


def _not_entered(row: Row, why: str) -> DeliveryUnconfirmed:
    return DeliveryUnconfirmed(
        f"the text was typed into '{row['name']}' and Enter was not pressed: {why}",
        hint=f"look: mam read {row['name']}",
        session=row,
    )
