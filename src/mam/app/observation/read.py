"""What a session's pane shows, cleaned for a terminal. Reads only."""

from __future__ import annotations

from mam.app.context.liveness import see_one
from mam.core.errors import PaneGone, TerminalsDown
from mam.core.liveness import Liveness
from mam.core.safe_text import for_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context

SCROLLBACK_LINES = 100_000
_DEAD_LINES = 200


def read(context: Context, target: str, *, lines: int | None = None, scrollback: bool = False) -> str:
    """Return the screen, or with scrollback everything tmux kept; of an ended session its last screen."""
    row = context.registry.view().find(target)
    sight = see_one(context, row)
    if sight.state == Liveness.UNKNOWN:
        raise TerminalsDown(f"the screen of '{row['name']}' cannot be read: {sight.reason}")
    if sight.pane is None or sight.pane.mark not in ("", row.get("id")):
        kept = row.get("last_visible_note")
        if kept is None:
            raise PaneGone(f"'{row['name']}' has no pane any more, and no screen of it was kept")
        return _tail(kept, lines)
    # tmux scrolls what a program last said away when it writes that the pane is dead.
    back = SCROLLBACK_LINES if scrollback else _DEAD_LINES if sight.state == Liveness.DEAD else 0
    text = context.tmux(row["tmux_server"]).capture([sight.pane.id], scrollback=back)[sight.pane.id]
    if text is None:
        raise PaneGone(f"the pane of '{row['name']}' went away just now")
    return _tail(for_screen(text).rstrip("\n"), lines)


def _tail(text: str, lines: int | None) -> str:
    kept = [line.rstrip() for line in text.splitlines()]
    while kept and not kept[-1]:
        kept.pop()
    while kept and not kept[0]:
        kept.pop(0)
    return "\n".join(kept[-lines:] if lines else kept)
