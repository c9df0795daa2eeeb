"""Delivering held messages: in order, typed only where that is safe, and proven by the agent's own record.

A message is typed at most once. The typing process records itself as the owner before the first key. Where
another process finds a message whose owner has died, it looks for a proof, and for the text in the input box
(`own_draft.py`). It never types the message again.
"""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from functools import partial
from threading import Lock

from mam.adapters.store.tables import messages
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.adapters.system.process import Identity
from mam.app.context import claims, setting_aside
from mam.app.messages import message_as_text_or_file, own_draft, receipt_proof
from mam.app.messages.enter_text import InTheWay, type_text
from mam.app.messages.hold_reason import ENDED, reason_on_screen, reason_to_hold
from mam.app.observation import conversations
from mam.app.observation.pane_look import look_at_pane, look_until_clear
from mam.core import message_rules as rules
from mam.core.activity import IDLE, UNKNOWN, WORKING
from mam.core.errors import ConversationBusy, DeliveryUnconfirmed, NotAllowed, PaneGone, TerminalsDown
from mam.core.message_rules import MessageState, Reason, ReasonCode
from mam.core.session_row import current_conversation, is_running, launch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mam.adapters.agents.kind import ScreenState
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.app.messages.message_as_text_or_file import CarriedText
    from mam.app.observation.pane_look import PaneLook
    from mam.core.session_row import Row

_NOTHING: list[Message] = []
_SHOWN_SECONDS, _STEP = 1.0, 0.02
# The messages that threads of this process are typing. If a message names this process as its owner and is
# not in this set, a thread gave it up, and a full disk kept the thread from recording that.
_being_typed: set[str] = set()
# A thread records itself as the owner and marks the message in one step for the other threads.
_marking = Lock()
_UNPROVEN = "nothing proves that the agent took the message; look: mam read"
_INTERRUPTED = "the typing was interrupted; look: mam read"


def deliver(context: Context, session_id: str) -> None:
    """Deliver the held messages of one session, in order, until one of them has to wait."""
    while True:
        first = context.registry.peek(lambda transaction: messages.first_open(transaction, session_id), None)
        if first is None or not _deliver_or_give_up(context, first):
            return


def _deliver_or_give_up(context: Context, message: Message) -> bool:
    """Deliver a message, or end one on which mam fails; return False if it has to wait."""
    if message.state == MessageState.TYPING and _is_being_typed(message):
        return False
    try:
        if message.flaw is not None:
            raise setting_aside.Flawed(message.flaw)
        if message.state == MessageState.TYPING:
            return _take_over(context, message)
        return _deliver_one(context, message)
    except Exception as error:
        if not setting_aside.is_of_item(error):
            raise
        return _give_up(context, message, setting_aside.reason_of(error))


def _give_up(context: Context, message: Message, reason: str) -> bool:
    """End a message on which mam fails: those after it are delivered, and its sender is told the reason."""
    was_typed = message.state == MessageState.TYPING or message.attempts > 0
    state = MessageState.UNCONFIRMED if was_typed else MessageState.FAILED
    told = f"mam cannot deliver it: {reason}"

    def work(transaction: Transaction) -> bool:
        current = messages.find(transaction, message.id)
        if current is not None and current.state in (MessageState.HELD, MessageState.TYPING):
            messages.update(transaction, message.id, state=state, reason=told, owner=None)
            row = transaction.get(message.session_id)
            transaction.log(message.sender, "send", row, told, message=message.id, state=state)
        return setting_aside.record(transaction, setting_aside.MESSAGE, message.id, reason)

    if context.registry.note(work):
        context.warn(f"message {message.id} is {state}: {told}")
    return True


def resolve_abandoned(context: Context, session_id: str) -> None:
    """End the messages of a session whose typing process died. The caller stops the session."""
    for message in _open_without_text(context, session_id):
        if message.state == MessageState.TYPING and not _is_being_typed(message):
            found = context.registry.peek(partial(messages.find, message_id=message.id), None)
            if found is not None and found.state == MessageState.TYPING:
                _take_over(context, found, is_stop=True)


def comes_next(context: Context, message: Message) -> bool:
    """Tell whether mam can try a held message soon: each one before it is new, or is being typed."""
    held = _open_without_text(context, message.session_id)
    earlier = itertools.takewhile(lambda other: other.id != message.id, held)
    return bool(held) and all(
        _is_being_typed(other)
        if other.state == MessageState.TYPING
        else other.reason_code == ReasonCode.NOT_TRIED
        for other in earlier
    )


def is_typed_to(context: Context, session_id: str) -> bool:
    """Tell whether a process types a message into a session now."""
    return any(
        message.state == MessageState.TYPING and _is_being_typed(message)
        for message in _open_without_text(context, session_id)
    )


def _open_without_text(context: Context, session_id: str) -> list[Message]:
    return context.registry.peek(
        lambda transaction: messages.open_without_text(transaction, session_id), _NOTHING
    )


def deliver_all(context: Context) -> None:
    """Deliver the held messages of every session; cheap where there are none."""
    nobody: list[str] = []
    for session_id in context.registry.peek(messages.sessions_with_open, nobody):
        deliver(context, session_id)


def _is_being_typed(message: Message) -> bool:
    """Tell whether the owner of a message lives and has not given it up."""
    owner = Identity.from_json(message.owner)
    if owner is None or not process.is_alive(owner):
        return False
    if owner != process.me():
        return True
    with _marking:
        return message.id in _being_typed


@contextmanager
def _owned(
    context: Context, message: Message, record: Callable[[Transaction], Message | None]
) -> Iterator[Message | None]:
    """Own a message for a while, if `record` does so; yield None if it does not, or if a thread has it."""
    is_ours = False
    try:
        with _marking:
            owned = None if message.id in _being_typed else context.registry.note(record)
            is_ours = owned is not None and owned.state == MessageState.TYPING
            if is_ours:
                _being_typed.add(message.id)
        yield owned if is_ours else None
    finally:
        if is_ours:
            _being_typed.discard(message.id)


def _row_of(context: Context, message: Message) -> Row | None:
    return context.registry.view().by_id(message.session_id)


def _deliver_one(context: Context, message: Message) -> bool:
    """Type one message if nothing is in the way; return False if the message has to wait."""
    row = _row_of(context, message)
    if row is None:
        return _end(context, message, MessageState.FAILED, reason="the session was forgotten")
    try:
        look = _look(context, row)
        failure = _failure(context, row, look)
        reason, activity = reason_to_hold(context, row, message, look)
    except Exception as error:
        if not setting_aside.is_of_item(error):
            raise
        # This says something about the session, and nothing about the message.
        unseen = f"mam cannot look at the session: {setting_aside.reason_of(error)}"
        return _hold(context, message, unseen)
    if failure:
        return _end(context, message, MessageState.FAILED, reason=failure)
    if reason is not None and reason.code == ReasonCode.DRAFT and _reopen(context, row, look):
        return True
    if reason:
        return _hold(context, message, reason)
    return _carry_and_type(context, row, message, activity)


def _carry_and_type(context: Context, row: Row, message: Message, activity: str) -> bool:
    """Type a message into a session that can take it; return False if it has to wait after all."""
    kind = context.kind(row["agent"])
    try:
        carried = message_as_text_or_file.prepare(context, row, message)
    except (OSError, NotAllowed) as error:
        unwritten = f"the file for the message could not be written: {error}"
        return _end(context, message, MessageState.FAILED, reason=unwritten)
    if carried.text is None:
        mistaken = f"{kind.name} would take this text for a command"
        return _end(context, message, MessageState.FAILED, reason=mistaken)
    try:
        row = conversations.record_open_conversation(context, row)
    except ConversationBusy as error:
        return _hold(context, message, error.message)
    conversation = conversations.open_conversation(context, row) or ""
    before = kind.transcript_size(conversation, conversations.stores_of(context, row))
    with _owned(context, message, _begin_typing(row, message, carried, before, conversation)) as owned:
        if owned is None:
            return False
        try:
            proof = _make_proof(context, owned, carried.text, conversation, owned.changed_at)
            return _type(context, row, owned, proof, activity)
        except BaseException:
            # This process lives on as the owner, so no other process would ever end the message.
            _end(context, owned, MessageState.UNCONFIRMED, reason=_INTERRUPTED)
            raise


def _failure(context: Context, row: Row, look: PaneLook) -> str | None:
    """Return why no message can ever be typed to this session; None if one can."""
    return never_typed(context, row, has_ended=look.absence in ENDED)


def never_typed(context: Context, row: Row, *, has_ended: bool = True) -> str | None:
    """Return why no message can ever be typed to this session, by its row; None if one can."""
    kind = context.kind(row["agent"])
    if not kind.reads_screen:
        return f"mam cannot read the screen of {kind.name}, so it does not type into it"
    if has_ended and (refusal := _never_resumed(context, row)):
        return f"it has ended and cannot be resumed: {refusal}"
    return None


def _never_resumed(context: Context, row: Row) -> str | None:
    """Return why an ended session can never be resumed; None if it may, or if nobody can tell."""
    if is_running(row) or not context.kind(row["agent"]).can_resume:
        return None
    view = context.registry.view()
    if any(intent.session_id == row["id"] for intent in view.intents):
        # While a verb resumes the session, the file of its conversation may have no history for a moment.
        return None
    choice = conversations.resume_choice(context, row, view.rows, view.identities, view.listed)
    if choice.id is not None and choice.on_disk is None:
        return None
    return conversations.resume_refusal(row, choice)


def _make_proof(
    context: Context, message: Message, text: str, conversation: str, began_at: float
) -> receipt_proof.DeliveryProof:
    since = began_at if message.typed is None else message.typed.at
    return receipt_proof.DeliveryProof(
        message,
        text,
        conversation=conversation,
        before=message.before or 0,
        since=since,
        is_repeated=context.registry.peek(
            lambda transaction: messages.was_typed_lately(
                transaction, message, since - messages.REPEATED_SECONDS
            ),
            True,
        ),
    )


def _look(context: Context, row: Row) -> PaneLook:
    """Look at a session; if the agent took a text a moment ago, wait until the input box is drawn empty."""
    since, deadline = context.now() - _SHOWN_SECONDS, Deadline(_SHOWN_SECONDS)
    while True:
        look = look_until_clear(lambda: look_at_pane(context, row))
        if look.screen_state.box != "draft" or deadline.has_passed():
            return look
        if not context.registry.peek(
            lambda transaction: messages.was_taken_lately(transaction, row["id"], since), False
        ):
            return look
        deadline.pause(_STEP)


def _type(
    context: Context, row: Row, message: Message, proof: receipt_proof.DeliveryProof, state: str
) -> bool:
    """Type a message after another look, and wait for the proof.

    `state` is the activity that was known a moment ago. If the screen shows no state, it still holds.
    """
    kind = context.kind(row["agent"])
    outcome = MessageState.SUBMITTED

    def check(screen: ScreenState) -> Reason | None:
        return reason_on_screen(kind, screen, message, state if screen.state == UNKNOWN else screen.state)

    try:
        screen = type_text(
            context,
            row,
            proof.text,
            check,
            is_command=message.is_command,
            is_resting=state == IDLE,
        )
        outcome = (
            MessageState.QUEUED
            if (state if screen.state == UNKNOWN else screen.state) == WORKING
            else MessageState.SUBMITTED
        )
    except DeliveryUnconfirmed as error:
        # A person at the terminal may have pressed Enter.
        evidence = None if message.is_command else receipt_proof.find(context, row, proof)
        if evidence:
            return _end(context, message, MessageState.SUBMITTED, reason=None, evidence=evidence)
        return _end(context, message, MessageState.UNCONFIRMED, reason=error.message)
    except TerminalsDown as error:
        # tmux did not answer: it may have typed the text all the same.
        context.progress(error.message)
    except InTheWay as error:
        return _hold(context, message, error.reason)
    except PaneGone as error:
        # tmux typed nothing, or the program that got the text has ended.
        return _hold(context, message, error.message)
    evidence = receipt_proof.wait_for(context, row, proof)
    if evidence == "hook" and state == WORKING and receipt_proof.was_working(context, row, proof):
        # Some screens show late, or never, that the agent works.
        outcome = MessageState.QUEUED
    if evidence:
        return _end(context, message, outcome, reason=None, evidence=evidence)
    return _end(context, message, MessageState.UNCONFIRMED, reason=_UNPROVEN)


def _begin_typing(
    row: Row, message: Message, carried: CarriedText, before: int, conversation: str
) -> Callable[[Transaction], Message | None]:
    """Return what records this process as the owner that types the message, unless another types or typed it.

    A stop types too. It claims the session before it looks for messages that are being typed, and this
    function looks for that claim: so at most one of the two types.
    """

    def work(transaction: Transaction) -> Message | None:
        first = messages.first_open(transaction, message.session_id)
        if first is None or first.id != message.id or first.state != MessageState.HELD:
            return None
        if _is_being_stopped(transaction, message):
            return messages.update(transaction, message.id, reason=rules.STOPPING)
        return messages.update(
            transaction,
            message.id,
            state=MessageState.TYPING,
            owner=process.me().as_json(),
            carrier=carried.carrier,
            added=carried.added,
            before=before,
            typed=messages.Typed(carried.text or "", transaction.now, conversation, launch_of(row)),
            attempts=message.attempts + 1,
            reason=None,
        )

    return work


def _is_being_stopped(transaction: Transaction, message: Message) -> bool:
    intent = transaction.intents.of(message.session_id)
    return intent is not None and intent.verb == "stop" and claims.is_owned(intent)


def _hold(context: Context, message: Message, reason: str) -> bool:
    def work(transaction: Transaction) -> None:
        if _is_unchanged(transaction, message):
            messages.update(transaction, message.id, state=MessageState.HELD, reason=reason, owner=None)

    code = reason.code if isinstance(reason, Reason) else None
    if (message.state, message.reason, message.reason_code) != (MessageState.HELD, reason, code):
        context.registry.note(work)
    return False


def _is_unchanged(transaction: Transaction, message: Message) -> bool:
    """Tell whether a message is still as it was read; meanwhile another process may have typed it."""
    current = messages.find(transaction, message.id)
    return current is not None and (current.state, current.owner) == (message.state, message.owner)


def _end(
    context: Context,
    message: Message,
    state: MessageState,
    *,
    reason: str | None,
    evidence: str | None = None,
) -> bool:
    def work(transaction: Transaction) -> None:
        if not _is_unchanged(transaction, message):
            current = messages.find(transaction, message.id)
            if evidence and current is not None and current.state == MessageState.UNCONFIRMED:
                # The session ended meanwhile, and with it the message. Now there is a proof.
                messages.correct(transaction, current, evidence)
            return
        messages.update(transaction, message.id, state=state, reason=reason, evidence=evidence, owner=None)
        row = transaction.get(message.session_id)
        transaction.log(
            message.sender, "send", row, reason, message=message.id, state=state, evidence=evidence
        )

    context.registry.note(work)
    return True


def _text_of(context: Context, row: Row, message: Message) -> str | None:
    try:
        return message_as_text_or_file.prepare(context, row, message).text
    except (OSError, NotAllowed):
        # Without the file for the message, the text to look for is not known.
        return None


def _reopen(context: Context, row: Row, look: PaneLook) -> bool:
    """Take up the message again that was typed last, if its text is the draft that is in the way."""
    last = context.registry.peek(lambda transaction: messages.last_typed(transaction, row["id"]), None)
    if last is None or last.state != MessageState.UNCONFIRMED or last.reason_code == ReasonCode.LEFT_IN_BOX:
        return False
    if last.typed is not None and last.typed.launch != launch_of(row):
        return False
    text = _typed_text(context, row, last)
    typed_at = last.changed_at if last.typed is None else last.typed.at
    if text is None or not own_draft.is_ours(context, row, look.screen_state, text, typed_at):
        return False

    def work(transaction: Transaction) -> bool:
        if not _is_unchanged(transaction, last):
            return False
        # Without an owner it is a message that its sender has abandoned.
        messages.update(transaction, last.id, state=MessageState.TYPING, reason=None, owner=None)
        return True

    return context.registry.note(work)


def _typed_text(context: Context, row: Row, message: Message) -> str | None:
    """Return what was typed for a message; an older mam did not record it."""
    return _text_of(context, row, message) if message.typed is None else message.typed.text


def _take_over(context: Context, message: Message, *, is_stop: bool = False) -> bool:
    """End a message whose owner died while typing, without typing it again; False if it has to wait.

    This may press keys, so it waits for a stop as `_begin_typing` does, unless the stop itself asks for it.
    """

    def record(transaction: Transaction) -> Message | None:
        if not _is_unchanged(transaction, message):
            return None
        if not is_stop and _is_being_stopped(transaction, message):
            messages.update(transaction, message.id, reason=rules.STOPPING)
            return None
        return messages.update(transaction, message.id, owner=process.me().as_json())

    with _owned(context, message, record) as owned:
        if owned is None:
            return False
        try:
            settled = _settle(context, owned, message.changed_at)
        except BaseException:
            _end(context, owned, MessageState.UNCONFIRMED, reason=_INTERRUPTED)
            raise
        if settled.state == MessageState.TYPING:
            return _wait_to_finish(context, owned, settled.reason)
        return _end(context, owned, settled.state, reason=settled.reason, evidence=settled.evidence)


def _settle(context: Context, message: Message, since: float) -> own_draft.Settled:
    row = _row_of(context, message)
    text = _typed_text(context, row, message) if row is not None else None
    if row is None or not text:
        return own_draft.Settled(MessageState.UNCONFIRMED, _INTERRUPTED)
    conversation = current_conversation(row) or "" if message.typed is None else message.typed.conversation
    proof = _make_proof(context, message, text, conversation, since)
    if evidence := receipt_proof.find_late(context, row, proof):
        return own_draft.Settled(MessageState.SUBMITTED, None, evidence)
    if message.typed is not None and message.typed.launch != launch_of(row):
        # The text is gone with the agent that it was typed to.
        return own_draft.Settled(MessageState.UNCONFIRMED, own_draft.NO_PROOF)
    return own_draft.settle(context, row, message, proof)


def _wait_to_finish(context: Context, message: Message, reason: str | None) -> bool:
    """Leave a message without an owner until what is in the way of its Enter has gone."""

    def work(transaction: Transaction) -> None:
        if _is_unchanged(transaction, message):
            messages.update(transaction, message.id, reason=reason, owner=None)

    context.registry.note(work)
    return False
