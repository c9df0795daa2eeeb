"""Why a message cannot be typed now: by one look at the screen, and by all evidence of the session."""

from __future__ import annotations

from mam.app.observation.pane_look import gather_evidence
from mam.app.observation.versions import is_box_proven
from mam.core import message_rules as rules
from mam.core.activity import UNKNOWN, WAITING, WORKING, is_asking
from mam.core.liveness_values import Liveness
from mam.core.session_row import current_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Kind, ScreenState
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.app.observation.pane_look import PaneLook
    from mam.core.message_rules import Reason
    from mam.core.session_row import Row

# What a look finds if the agent does not run any more.
ENDED = (Liveness.DEAD, Liveness.GONE)


def reason_to_hold(
    context: Context, row: Row, message: Message, look: PaneLook, *, is_own_draft: bool = False
) -> tuple[Reason | None, str]:
    """Return why a message cannot be typed now, by all evidence, or None; and what the agent does.

    With `is_own_draft` the draft in the input box is the text of this message, and not in its way.
    """
    if look.absence in ENDED:
        return rules.ended_reason(row["name"]), UNKNOWN
    if look.absence:
        return rules.absence_reason(look.absence), UNKNOWN
    if look.liveness.pane is not None and look.liveness.pane.in_mode:
        return rules.scrolling_reason(look.pane_id), UNKNOWN
    kind, session = context.kind(row["agent"]), gather_evidence(context, row, look)
    verdict = session.verdict(context.now()).state
    screen = look.screen_state
    activity = verdict if screen.state == UNKNOWN or verdict == WORKING else screen.state
    reason = reason_on_screen(kind, screen, message, activity, is_own_draft=is_own_draft)
    if reason is None and (verdict == WAITING or is_asking(session.evidence)):
        reason = rules.ASKING
    if reason is None and not is_box_proven(context, row, session, screen):
        reason = rules.untested_version(kind.name)
    if reason is None and message.conversation:
        current = session.conversation or current_conversation(row)
        reason = rules.other_conversation(message.conversation, current)
    return reason, activity


def reason_on_screen(
    kind: Kind, screen: ScreenState, message: Message, state: str, *, is_own_draft: bool = False
) -> Reason | None:
    """Return why a message cannot be typed into this screen; None if it can."""
    return rules.reason_to_hold(
        state=state,
        dialog=screen.dialog,
        box="empty" if is_own_draft else screen.box,
        queues=kind.queues and not message.is_command,
        when=message.wanted,
        detail=screen.detail,
    )
