"""One look at a session before mam types into its pane: its process, its screen and its other evidence.

Pane and screen come from one tmux call, so they show the same moment.
"""

from __future__ import annotations

import os

from mam.adapters.agents.kind import Screen, ScreenState
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux.parse import Listing
from mam.app.context.liveness import SessionLiveness, check_liveness, judge_liveness
from mam.app.observation import activity
from mam.app.observation.newest_hook_reports import newest_reports
from mam.core.errors import PaneGone, Unavailable
from mam.core.liveness_values import Liveness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.session_row import Row

REPLACED, SHELL = "replaced", "shell"
# How long a program may take to draw one screen, and the pause between two looks meanwhile.
_DRAWS_SECONDS, _STEP = 0.3, 0.02
SHELLS = ("sh", "bash", "dash", "zsh", "fish", "ksh", "csh", "tcsh")


class PaneLook:
    """One look at a session: its liveness, its screen, the meaning of the screen, and the cursor."""

    __slots__ = ("cursor", "liveness", "pane_id", "screen", "screen_state")

    def __init__(self, liveness: SessionLiveness) -> None:
        self.liveness = liveness
        self.pane_id = liveness.pane.id if liveness.pane else ""
        self.screen_state = ScreenState()
        self.screen = Screen("")
        self.cursor = (0, 0)

    @property
    def absence(self) -> str | None:
        """Why mam cannot type to the agent, as `message_rules.absence_reason` takes it; None if it can."""
        state, pane = self.liveness.state, self.liveness.pane
        if state == Liveness.GONE and pane is not None and not pane.dead:
            return REPLACED
        if state != Liveness.ALIVE or pane is None:
            return state
        return SHELL if _is_shell(pane) else None


def look_at_pane(context: Context, row: Row) -> PaneLook:
    """Look at a session now. A pane that does not exist is no error: the look then has an `absence`."""
    pane_id = (row.get("pane") or {}).get("id")
    if not pane_id:
        return PaneLook(check_liveness(context, row))
    try:
        answer = context.tmux(row["tmux_server"]).look(pane_id)
    except PaneGone:
        return PaneLook(check_liveness(context, row))
    except Unavailable as error:
        return PaneLook(SessionLiveness(Liveness.UNKNOWN, reason=error.message))
    liveness = judge_liveness(row, Listing(True, [answer.pane]), context.root_mark)
    if liveness.state != Liveness.ALIVE:
        # The recorded pane is not the session's any more; another pane may carry its mark.
        return PaneLook(check_liveness(context, row))
    look = PaneLook(liveness)
    look.cursor = answer.cursor_x, answer.cursor_y
    look.screen = Screen(answer.captured, *look.cursor)
    look.screen_state = context.kind(row["agent"]).read_screen(look.screen)
    return look


def look_until_clear(look_once: Callable[[], PaneLook]) -> PaneLook:
    """Look until the screen shows an input box or a dialog, for a short time.

    A program draws its screen in several writes, and one look may fall between two of them.
    """
    deadline = Deadline(_DRAWS_SECONDS)
    while True:
        look = look_once()
        is_clear = look.screen_state.box is not None or look.screen_state.dialog is not None
        if look.absence or is_clear or not deadline.pause(_STEP):
            break
    return look


def gather_evidence(context: Context, row: Row, look: PaneLook) -> activity.SessionEvidence:
    """Return all evidence of what the session does, with the screen of this look."""
    report = newest_reports(context, [row]).get(row["id"])
    return activity.gather_one(context, row, look.liveness, report, look.screen_state)


def _is_shell(pane: Pane) -> bool:
    """Tell whether the agent has ended and left the shell from which it was started.

    Only an adopted session has such a shell. tmux names the foreground program of the pane; the first
    process of the pane must be a shell too.
    """
    if pane.command.lstrip("-") not in SHELLS:
        return False
    argv = process.command_line(pane.pid) or [""]
    return os.path.basename(argv[0]).lstrip("-") in SHELLS
