"""Makes the live region: the rows below the conversation, which show the agent's current state."""

from __future__ import annotations

from .agent import Agent
from .header_and_footer_rows import box_region, footer_row, queue_rows, spinner_row
from .text_width import shorten

STARTING = "Starting…"
AGAIN = "Press Ctrl-C again to exit"
EXITING = "✻ Exiting…"

Region = tuple[list[str], tuple[int, int] | None]


def live_region(agent: Agent, columns: int, height: int) -> Region:
    """Return the rows below the conversation, and the position of the cursor; None hides the cursor.

    A low screen hides rows at the top of the region, but never the input box or the options.
    """
    dialog, session = agent.dialog(), agent.session
    if dialog:
        return ["", *dialog.rows(columns)][-height:], None
    if agent.phase == "starting":
        return [STARTING], (0, len(STARTING))
    above = [*session.output.growing(), ""]
    if session.is_busy() or agent.phase == "hung":
        status = EXITING if agent.phase == "hung" else session.stage.status
        above.append(shorten(spinner_row(status, agent.now - session.busy_since), columns - 1))
    above += queue_rows([display for _, display in session.queue], columns)
    notice = AGAIN if agent.again_until > agent.now else ""
    footer = footer_row(agent.permissions, notice, columns)
    box, (row, column) = box_region(agent.editor, agent.name, footer, columns, agent.suggestion)
    rows = [*above, *box]
    hidden = max(len(rows) - height, 0)
    return rows[hidden:], (max(row + len(above) - hidden, 0), column)


def title(agent: Agent) -> str:
    """Return the pane's title, empty while the agent starts."""
    if agent.dialog():
        return "✋ practice · waiting"
    if agent.phase == "starting":
        return ""
    is_busy = agent.session.is_busy() or agent.phase == "hung"
    return "✦ practice · working" if is_busy else "◇ practice · ready"
