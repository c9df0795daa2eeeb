"""One look at a session before something goes into its pane: its process, its screen, its own word.

Pane and screen are of one moment and cost one tmux call.
"""

from __future__ import annotations

import os

from mam.adapters.agents.kind import Screen, ScreenState
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux.parse import Listing
from mam.app.context.liveness import Sight, see, see_one
from mam.app.observation import activity
from mam.app.observation.hook_reports import newest_reports
from mam.core.errors import PaneGone, Unavailable
from mam.core.liveness import Liveness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.app.context.context import Context
    from mam.core.session_row import Row

REPLACED, SHELL = "replaced", "shell"
# How long a program may take to draw one screen, and how often it is looked at meanwhile.
_DRAWS_SECONDS, _STEP = 0.3, 0.02
_SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh")


class PaneLook:
    """What was seen: whether its agent is there, what its screen shows, and where the cursor stood."""

    __slots__ = ("cursor", "look", "pane_id", "screen", "sight")

    def __init__(self, sight: Sight) -> None:
        self.sight = sight
        self.pane_id = sight.pane.id if sight.pane else ""
        self.look = ScreenState()
        self.screen = Screen("")
        self.cursor = (0, 0)

    @property
    def absence(self) -> str | None:
        """Why there is nobody to type to: a word that `core.message.not_there` knows, or None."""
        if self.sight.state == Liveness.GONE and self.sight.pane is not None and not self.sight.pane.dead:
            return REPLACED
        if self.sight.state != Liveness.ALIVE or self.sight.pane is None:
            return self.sight.state
        return SHELL if _is_shell(self.sight) else None


def glance(context: Context, row: Row) -> PaneLook:
    """Look at a session now. Never raises for a pane that is not there."""
    pane_id = (row.get("pane") or {}).get("id")
    if not pane_id:
        return PaneLook(see_one(context, row))
    try:
        seen = context.tmux(row["tmux_server"]).look(pane_id)
    except PaneGone:
        return PaneLook(see_one(context, row))
    except Unavailable as error:
        return PaneLook(Sight(Liveness.UNKNOWN, reason=error.message))
    sight = see(row, Listing(True, [seen.pane]), context.paths.root)
    if sight.state != Liveness.ALIVE:
        # This pane is not it; another one may be.
        return PaneLook(see_one(context, row))
    found = PaneLook(sight)
    found.cursor = seen.cursor_x, seen.cursor_y
    found.screen = Screen(seen.screen, *found.cursor)
    found.look = context.kind(row["agent"]).look(found.screen)
    return found


def look_until_clear(look: Callable[[], PaneLook]) -> PaneLook:
    """Look until something is made out: a look may fall between two parts of one drawing."""
    deadline = Deadline(_DRAWS_SECONDS)
    while not (seen := look()).absence and seen.look.box is None and seen.look.dialog is None:
        if not deadline.pause(_STEP):
            break
    return seen


def known(context: Context, row: Row, seen: PaneLook) -> activity.SessionEvidence:
    """Return all that speaks of what the session is doing, with the screen as it was seen."""
    report = newest_reports(context, [row]).get(row["id"])
    return activity.add_up(context, row, seen.sight, report, seen.look)


def _is_shell(sight: Sight) -> bool:
    """Tell whether the agent left the shell that it was started from: only an adopted one has such."""
    assert sight.pane is not None
    if sight.pane.command.lstrip("-") not in _SHELLS:
        return False
    words = process.command_line(sight.pane.pid) or [""]
    return os.path.basename(words[0]).lstrip("-") in _SHELLS
