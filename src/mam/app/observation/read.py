"""The verb `read`: what a session's pane shows, cleaned for a terminal. Reads only."""

from __future__ import annotations

from mam.app.context.liveness import check_all_liveness
from mam.core.errors import PaneGone, TerminalsDown
from mam.core.liveness_values import Liveness
from mam.core.safe_text import for_screen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.app.context.context import Context
    from mam.core.session_row import Row

SCROLLBACK_LINES = 100_000
_DEAD_LINES = 200


def read(context: Context, target: str, *, lines: int | None = None, scrollback: bool = False) -> str:
    """Return the screen, or with `scrollback` all that tmux has kept; of an ended session its last screen.

    `lines` limits the result to the last lines.
    """
    context.require_own_root()
    view = context.view_to_show()
    row = view.find(target)
    liveness = check_all_liveness(context, [row], view=view)[row["name"]]
    pane = liveness.pane
    if liveness.state == Liveness.UNKNOWN:
        raise TerminalsDown(f"the screen of '{row['name']}' cannot be read: {liveness.reason}")
    if pane is None or pane.mark not in ("", row.get("id")):
        last_screen = row.get("last_visible_note")
        if last_screen is None:
            raise PaneGone(
                f"'{row['name']}' has no pane any more, and mam has kept no screen of it",
                hint=_way_to_what_was_said(context, row),
            )
        return _tail(last_screen, lines)
    # tmux writes "Pane is dead" into the pane and thereby scrolls up the last lines of the program.
    back = SCROLLBACK_LINES if scrollback else _DEAD_LINES if liveness.state == Liveness.DEAD else 0
    text = context.tmux(row["tmux_server"]).capture([pane.id], scrollback=back)[pane.id]
    if text is None:
        raise PaneGone(
            f"the pane of '{row['name']}' was closed just now", hint=_way_to_continue(context, row)
        )
    return _tail(for_screen(text).rstrip("\n"), lines)


def _way_to_what_was_said(context: Context, row: Row) -> str:
    """Return what shows the conversation, if its record can be read, and how the session goes on."""
    from mam.app.observation.transcript import usage_and_last_words

    way = _way_to_continue(context, row)
    (facts,) = usage_and_last_words(context, [row])
    if facts["usage"] is None:
        return way
    return f"mam read {row['name']} --parsed shows what was said; {way}"


def _way_to_continue(context: Context, row: Row) -> str:
    from mam.app.observation.conversations import way_to_continue

    return way_to_continue(context, row)


def _tail(text: str, count: int | None) -> str:
    """Return the last lines without empty ones at either end; all lines where `count` is None."""
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return "\n".join(lines[-count:] if count else lines)
