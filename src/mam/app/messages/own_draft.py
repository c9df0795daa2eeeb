"""Finishing a message whose text stands in the input box because its sender died before Enter.

If the input box shows exactly the text that was typed for the message, mam presses Enter, with the checks of
every Enter. If it shows only the beginning of it, mam deletes that. Both need more than a person may have
written: enough signs that can be read, with their spaces, of a text that was typed lately. Anything else may
be a person's draft, and mam leaves it alone. The text is never typed again. Before Enter the agent's own
record must show that the agent did not take the text: some programs put a prompt back into the box when its
turn is interrupted.
"""

from __future__ import annotations

from mam.adapters.system.deadline import Deadline
from mam.adapters.tmux.error_translation import PaneChanged, PaneInMode
from mam.app.messages import receipt_proof
from mam.app.messages.enter_text import enter_standing_text
from mam.app.messages.hold_reason import ENDED, reason_to_hold
from mam.app.observation.pane_look import REPLACED, SHELL, look_at_pane, look_until_clear
from mam.core.activity import WORKING
from mam.core.errors import DeliveryUnconfirmed, PaneGone, TerminalsDown, Unavailable
from mam.core.liveness_values import Liveness
from mam.core.message_rules import MessageState, Reason, ReasonCode, absence_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import ScreenState
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.app.messages.receipt_proof import DeliveryProof
    from mam.app.observation.pane_look import PaneLook
    from mam.core.session_row import Row

# The text is gone with the agent.
_GONE = (*ENDED, Liveness.LOOSE, REPLACED, SHELL)
# A program may still be drawing the text. Only a draft that stands still for so long is all of it.
_STILL_SECONDS, _STEP = 1.0, 0.05
# A person may be typing. Then mam looks again at the next tick.
_CHANGING_SECONDS = 5.0
_ERASED_SECONDS = 5.0
# What was typed earlier may be gone long since, and the draft a person's.
_LATELY_SECONDS = 3600.0
_DIED = "the process that typed the message died"
NO_PROOF = f"{_DIED}, and nothing proves that the agent took it"


class Settled:
    """What became of a message; in state `typing` it has to wait, for the reason."""

    __slots__ = ("evidence", "reason", "state")

    def __init__(self, state: MessageState, reason: str | None, evidence: str | None = None) -> None:
        self.state = state
        self.reason = reason
        self.evidence = evidence


def is_ours(context: Context, row: Row, screen: ScreenState, text: str, typed_at: float) -> bool:
    """Tell whether the text in the input box is surely the one that mam typed then.

    If nobody was at a terminal since, the text that the box shows is mam's. Otherwise only much text is.
    """
    kind = context.kind(row["agent"])
    if not kind.box_shows(screen, text):
        return False
    if _is_recent(context, typed_at) and kind.box_surely_shows(screen, text):
        return True
    return _nobody_typed(context, row, typed_at)


def _nobody_typed(context: Context, row: Row, since: float) -> bool:
    """Tell whether tmux knows that no person has typed into the pane since then."""
    try:
        return not context.tmux(row["tmux_server"]).may_have_got_keys(row["pane"]["id"], since)
    except Unavailable:
        return False


def _is_recent(context: Context, typed_at: float) -> bool:
    return abs(context.now() - typed_at) <= _LATELY_SECONDS


def settle(context: Context, row: Row, message: Message, proof: DeliveryProof) -> Settled:
    """Finish a message that its sender left half typed. Its proof was looked for, and there is none."""
    kind, look = context.kind(row["agent"]), _look_at_still_box(context, row)
    if look is None:
        return Settled(
            MessageState.TYPING, Reason("the text in its input box keeps changing", ReasonCode.DRAFT)
        )
    if look.absence in _GONE:
        return Settled(MessageState.UNCONFIRMED, NO_PROOF)
    reason, _ = reason_to_hold(context, row, message, look, is_own_draft=True)
    screen = look.screen_state
    if look.absence or screen.dialog or screen.box is None:
        return Settled(MessageState.TYPING, reason)
    if screen.box == "empty":
        return Settled(MessageState.UNCONFIRMED, NO_PROOF)
    if is_ours(context, row, screen, proof.text, proof.since):
        if not message.is_command and not receipt_proof.is_unsubmitted(context, row, proof):
            return _left("mam cannot tell whether the agent took the text that stands in its input box")
        return Settled(MessageState.TYPING, reason) if reason else _enter(context, row, proof)
    if kind.box_shows(screen, proof.text):
        return _left(f"{_DIED}, and mam cannot tell whether the text in the input box is this message")
    is_part = _is_recent(context, proof.since) and kind.box_shows_part(screen, proof.text)
    if kind.erase_key is not None and is_part:
        return (
            Settled(MessageState.TYPING, reason)
            if reason
            else _erase(context, row, kind.erase_key, proof.text)
        )
    return _left(f"{_DIED}, and other text is in the input box")


def _look_at_still_box(context: Context, row: Row) -> PaneLook | None:
    """Look until the input box has not changed for a moment; None if it keeps changing."""
    look = look_until_clear(lambda: look_at_pane(context, row))
    deadline, last = Deadline(_STILL_SECONDS), Deadline(_CHANGING_SECONDS)
    while look.screen_state.box == "draft" and deadline.pause(_STEP):
        before, look = look, look_until_clear(lambda: look_at_pane(context, row))
        if (look.cursor, look.screen_state.draft) != (before.cursor, before.screen_state.draft):
            if last.has_passed():
                return None
            deadline = Deadline(_STILL_SECONDS)
    return look


def _enter(context: Context, row: Row, proof: DeliveryProof) -> Settled:
    try:
        screen = enter_standing_text(
            context,
            row,
            proof.text,
            proof.since,
            lambda shown: is_ours(context, row, shown, proof.text, proof.since),
        )
        state = MessageState.QUEUED if screen.state == WORKING else MessageState.SUBMITTED
        pressed = "mam pressed Enter"
    except DeliveryUnconfirmed as error:
        return Settled(MessageState.TYPING, error.message)
    except TerminalsDown as error:
        # tmux did not answer: it may have pressed Enter all the same.
        context.progress(error.message)
        state, pressed = MessageState.SUBMITTED, "tmux did not answer, so mam may have pressed Enter"
    except PaneGone:
        return Settled(MessageState.UNCONFIRMED, NO_PROOF)
    if evidence := receipt_proof.wait_for(context, row, proof):
        return Settled(state, None, evidence)
    return _left(f"{pressed}, and nothing proves that the agent took the message")


def _erase(context: Context, row: Row, key: str, text: str) -> Settled:
    """Delete a part of a text from the input box, and see that the box is empty."""
    kind, tmux = context.kind(row["agent"]), context.tmux(row["tmux_server"])
    deadline = Deadline(_ERASED_SECONDS)
    while True:
        look = look_until_clear(lambda: look_at_pane(context, row))
        screen = look.screen_state
        if look.absence is None and screen.dialog is None and screen.box == "empty":
            return Settled(
                MessageState.FAILED,
                f"{_DIED} half way; mam deleted the part that stood in the input box",
            )
        if look.absence == Liveness.UNKNOWN:
            return Settled(MessageState.TYPING, absence_reason(look.absence))
        is_part = kind.box_shows_part(screen, text, is_sure=False)
        if look.absence or screen.dialog or not is_part or not deadline.pause(_STEP):
            return _left(f"{_DIED}, and a part of its text may be in the input box")
        try:
            tmux.keys(row["pane"]["id"], [key], mark=row["id"], at=look.cursor)
        except (PaneChanged, PaneInMode):
            continue
        except TerminalsDown:
            return Settled(MessageState.TYPING, absence_reason(Liveness.UNKNOWN))
        except PaneGone:
            return Settled(MessageState.UNCONFIRMED, NO_PROOF)
        _await_change(context, row, look, deadline)


def _await_change(context: Context, row: Row, before: PaneLook, deadline: Deadline) -> None:
    while deadline.pause(_STEP):
        look = look_at_pane(context, row)
        if look.cursor != before.cursor or look.screen_state.draft != before.screen_state.draft:
            return


def _left(reason: str) -> Settled:
    """Leave what stands in the input box to a person."""
    return Settled(MessageState.UNCONFIRMED, Reason(f"{reason}; look: mam read", ReasonCode.LEFT_IN_BOX))
