"""Whether an agent may have a text that its own record does not show: in its input box, or in its queue.

mam looks at the panes of all sessions with one call for each tmux server, and types nothing.
"""

from __future__ import annotations

from mam.adapters.agents.kind import Screen, ScreenState
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.app.context.liveness import identity_of
from mam.core.message_rules import may_have_unrecorded
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mam.app.context.context import Context
    from mam.core.session_row import Row

    # The tmux server and the id of a pane.
    Place = tuple[str, str]

# A program draws its screen in several writes, and one look may fall between two of them.
_DRAWS_SECONDS, _STEP = 0.3, 0.05
# tmux dates the output of a window in whole seconds.
_SLACK_SECONDS = 2.0


class SeenPane:
    """What the live pane of a session shows, and when a program last wrote into its window."""

    __slots__ = ("screen", "written_at")

    def __init__(self, screen: ScreenState, written_at: int) -> None:
        self.screen = screen
        self.written_at = written_at

    @property
    def is_clear(self) -> bool:
        """Whether the screen shows an input box or a dialog."""
        return self.screen.box is not None or self.screen.dialog is not None

    def is_unchanged_since(self, at: float) -> bool:
        """Tell whether nothing was drawn since then: a text that is typed is drawn."""
        return 0 < self.written_at <= at - _SLACK_SECONDS

    def asks_since_before(self, at: float) -> bool:
        """Tell whether a dialog is open that was open then: nothing was drawn in a later second.

        An agent that had the text typed, and asked again after that, has drawn for longer.
        """
        return self.screen.dialog is not None and 0 < self.written_at <= at


def look_at_panes(context: Context, rows: Iterable[Row], panes: Mapping[str, Place]) -> dict[str, SeenPane]:
    """Look at the panes of these sessions that live; for a short time again at those that are being drawn."""
    left = {row["id"]: row for row in rows if row["id"] in panes}
    found: dict[str, SeenPane] = {}
    deadline = Deadline(_DRAWS_SECONDS)
    while left:
        seen = _look_once(context, left, panes)
        found |= seen
        left = {key: row for key, row in left.items() if key in seen and not seen[key].is_clear}
        if not deadline.pause(_STEP):
            break
    return found


def may_be_unrecorded(
    context: Context,
    row: Row,
    text: str,
    *,
    is_in_pane: bool,
    seen: SeenPane | None,
    made_at: float,
    only_idle: bool = False,
) -> bool:
    """Tell whether the agent of a session may have a text that its own record does not show.

    `is_in_pane` says that the session has a live pane, and `seen` what the pane showed. The text was not
    typed before `made_at`, and with `only_idle` only while the agent was idle.
    """
    if not is_in_pane:
        identity = identity_of(row)
        # An agent that has lost its pane may still work on its queue.
        return process.is_alive(identity) if identity is not None else is_running(row)
    if seen is None:
        return True
    kind = context.kind(row["agent"])
    return may_have_unrecorded(
        activity=seen.screen.state,
        box=seen.screen.box,
        may_be_in_box=kind.box_may_show(seen.screen, text),
        queues=kind.queues and not only_idle,
        records_queue=kind.records_queue,
        asks=seen.screen.dialog is not None,
        asks_as_before=seen.asks_since_before(made_at),
    )


def _look_once(context: Context, rows: Mapping[str, Row], panes: Mapping[str, Place]) -> dict[str, SeenPane]:
    found = {}
    for server in {panes[session_id][0] for session_id in rows}:
        of_server = {key: panes[key][1] for key in rows if panes[key][0] == server}
        captures = context.resources.tmux(server).screens(of_server.values(), styled=True)
        for session_id, pane_id in of_server.items():
            capture = captures[pane_id]
            if capture is not None:
                kind = context.kind(rows[session_id]["agent"])
                screen = Screen(capture.captured, capture.cursor_x, capture.cursor_y)
                found[session_id] = SeenPane(kind.read_screen(screen), capture.written_at)
    return found
