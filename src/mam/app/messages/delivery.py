"""Delivering what is held: typed only where that is safe, in order, and proven by the agent's own record.

A message is typed at most once. Who types says so durably before the first key; whoever finds such a
message without its typist looks for the proof and never types it again.
"""

from __future__ import annotations

import itertools

from mam.adapters.store.tables import messages
from mam.adapters.system import process
from mam.adapters.system.deadline import Deadline
from mam.adapters.system.process import Identity
from mam.app.context import claims
from mam.app.messages import carrier, receipt_proof
from mam.app.messages.enter_text import submit
from mam.app.observation import conversations
from mam.app.observation.pane_look import glance, known, look_until_clear
from mam.app.observation.transcript import now_open
from mam.app.observation.versions import is_known, says_idle
from mam.core import message as rules
from mam.core.activity import IDLE, UNKNOWN, WAITING, WORKING, is_asking
from mam.core.errors import ConversationBusy, DeliveryUnconfirmed, NotAllowed, PaneGone, TerminalsDown
from mam.core.message import MessageState
from mam.core.session_row import current_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Kind, ScreenState
    from mam.adapters.store.tables.messages import Message
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.messages.carrier import Load
    from mam.app.observation.pane_look import PaneLook
    from mam.core.session_row import Row

_NOTHING: list[Message] = []
_REPEATED_SECONDS = 60.0
_SHOWN_SECONDS, _STEP = 1.0, 0.02
# What threads of this process type; not what one of them gave up and could not say so, as the disk was full.
_at_work: set[str] = set()
_UNPROVEN = "nothing proves that it was taken; look: mam read"
_TYPIST_DIED = "who typed it died, and nothing proves that it was taken"


def deliver(context: Context, session_id: str) -> None:
    """Deliver what is held for one session, in order, until one has to wait."""
    while True:
        waiting = context.registry.peek(lambda draft: messages.open_of(draft, session_id), _NOTHING)
        if not waiting:
            return
        first = waiting[0]
        if first.state == MessageState.TYPING:
            if _is_typed(first):
                return
            _settle(context, first)
        elif not _try(context, first):
            return


def comes_next(context: Context, message: Message) -> bool:
    """Tell whether a held message can be tried in a moment: each one before it is being typed or is new."""
    waiting = context.registry.peek(lambda draft: messages.open_of(draft, message.session_id), _NOTHING)
    before = itertools.takewhile(lambda one: one.id != message.id, waiting)
    return bool(waiting) and all(
        _is_typed(one) if one.state == MessageState.TYPING else one.reason == rules.NOT_TRIED
        for one in before
    )


def is_typed_to(context: Context, session_id: str) -> bool:
    """Tell whether somebody types a message into a session just now."""
    waiting = context.registry.peek(lambda draft: messages.open_of(draft, session_id), _NOTHING)
    return any(one.state == MessageState.TYPING and _is_typed(one) for one in waiting)


def deliver_all(context: Context) -> None:
    """Deliver what is held for every session; cheap where nothing is."""
    waiting = context.registry.peek(messages.open_of, _NOTHING)
    for session_id in dict.fromkeys(one.session_id for one in waiting):
        deliver(context, session_id)


def _is_typed(message: Message) -> bool:
    """Tell whether somebody is typing a message: who says so lives, and has not given it up."""
    owner = Identity.from_json(message.owner)
    if owner is None or not process.is_alive(owner):
        return False
    return owner != process.me() or message.id in _at_work


def _row_of(context: Context, message: Message) -> Row | None:
    return context.registry.view().by_id(message.session_id)


def _try(context: Context, message: Message) -> bool:
    """Type one message if nothing is in the way; False if it has to wait."""
    row = _row_of(context, message)
    if row is None:
        return _end(context, message, MessageState.FAILED, reason="its session was forgotten")
    kind = context.kind(row["agent"])
    if not kind.reads_screen:
        return _end(
            context,
            message,
            MessageState.FAILED,
            reason=f"mam cannot see whether {kind.name} waits for words",
        )
    seen = _look(context, row)
    reason = _reason(context, row, message, seen)
    if reason:
        return _hold(context, message, reason)
    try:
        load = carrier.load(context, row, message)
    except (OSError, NotAllowed) as error:
        return _end(context, message, MessageState.FAILED, reason=f"its file could not be written: {error}")
    if load.words is None:
        return _end(
            context, message, MessageState.FAILED, reason=f"{kind.name} would take these words for a command"
        )
    try:
        row = conversations.note_open(context, row)
    except ConversationBusy as error:
        return _hold(context, message, error.message)
    conversation = now_open(context, row) or ""
    before = kind.record_size(conversation, conversations.stores_of(context, row))
    _at_work.add(message.id)
    try:
        claimed = _begin(context, message, load, before)
        if claimed is None or claimed.state != MessageState.TYPING:
            return False
        try:
            trial = _trial(context, claimed, load.words, conversation)
            return _type(context, row, claimed, trial, seen.look.state)
        except BaseException:
            # The process lives on, and nobody else would dare to touch what it says it is typing.
            _end(
                context,
                claimed,
                MessageState.UNCONFIRMED,
                reason="its typing was interrupted; look: mam read",
            )
            raise
    finally:
        _at_work.discard(message.id)


def _trial(context: Context, message: Message, words: str, conversation: str) -> receipt_proof.DeliveryProof:
    return receipt_proof.DeliveryProof(
        message,
        words,
        conversation=conversation,
        before=message.before or 0,
        since=message.changed_at,
        is_repeated=_is_repeated(context, message),
    )


def _look(context: Context, row: Row) -> PaneLook:
    """Look at a session; what was typed a moment ago may still be shown, though it was taken."""
    since, deadline = context.now() - _SHOWN_SECONDS, Deadline(_SHOWN_SECONDS)
    while True:
        seen = look_until_clear(lambda: glance(context, row))
        if seen.look.box != "draft" or deadline.has_passed():
            return seen
        if not context.registry.peek(lambda draft: messages.was_taken_lately(draft, row["id"], since), False):
            return seen
        deadline.pause(_STEP)


def _type(
    context: Context, row: Row, message: Message, trial: receipt_proof.DeliveryProof, state: str
) -> bool:
    """Type it after another look; what no screen tells is still as it was known to be a moment ago."""
    kind = context.kind(row["agent"])
    taken = MessageState.SUBMITTED

    def check(look: ScreenState) -> str | None:
        return _reason_seen(kind, look, message, state if look.state == UNKNOWN else look.state)

    try:
        seen = submit(
            context,
            row,
            trial.words,
            check,
            is_command=message.is_command,
            is_resting=state == IDLE,
        )
        taken = (
            MessageState.QUEUED
            if (state if seen.state == UNKNOWN else seen.state) == WORKING
            else MessageState.SUBMITTED
        )
    except DeliveryUnconfirmed as error:
        # Somebody at the terminal may have pressed Enter.
        found = None if message.is_command else receipt_proof.find(context, row, trial)
        state, reason = (MessageState.SUBMITTED, None) if found else (MessageState.UNCONFIRMED, error.message)
        return _end(context, message, state, reason=reason, evidence=found)
    except TerminalsDown as error:
        # It may have been typed.
        context.progress(error.message)
    except PaneGone as error:
        # A guard refused it: nothing was typed, or nothing of it is left.
        return _hold(context, message, error.message)
    found = receipt_proof.wait_for(context, row, trial)
    if found == "hook" and state == WORKING and receipt_proof.was_working(context, row, trial):
        # The screen may not show yet, or never, that the agent works.
        taken = MessageState.QUEUED
    if found:
        return _end(context, message, taken, reason=None, evidence=found)
    return _end(context, message, MessageState.UNCONFIRMED, reason=_UNPROVEN)


def _reason(context: Context, row: Row, message: Message, seen: PaneLook) -> str | None:
    """Return why a message cannot be typed now, by all that is known."""
    if seen.absence:
        return rules.not_there(seen.absence)
    if seen.sight.pane is not None and seen.sight.pane.in_mode:
        return f"somebody is scrolling or searching in pane {seen.pane_id}"
    kind, heard = context.kind(row["agent"]), known(context, row, seen)
    verdict = heard.verdict(context.now()).state
    look = seen.look
    if look.state == UNKNOWN or verdict == WORKING:
        look.state = verdict
    found = _reason_seen(kind, look, message, look.state)
    if found is None and (verdict == WAITING or is_asking(heard.evidence)):
        return rules.WAITS
    if found is None and is_known(context, row) is False and not says_idle(heard, context.now()):
        return rules.untested(kind.name)
    if found is None and message.conversation:
        return rules.other_conversation(message.conversation, heard.conversation or current_conversation(row))
    return found


def _reason_seen(kind: Kind, look: ScreenState, message: Message, state: str) -> str | None:
    return rules.reason_to_hold(
        state=state,
        dialog=look.dialog,
        box=look.box,
        queues=kind.queues and not message.is_command,
        when=message.wanted,
        detail=look.detail,
    )


def _begin(context: Context, message: Message, load: Load, before: int) -> Message | None:
    """Say durably that this process types the message; None if somebody else does, or did.

    A stop types as well: it says so before it looks for messages that are typed, and is seen here.
    """

    def work(draft: Transaction) -> Message | None:
        waiting = messages.open_of(draft, message.session_id)
        if not waiting or waiting[0].id != message.id or waiting[0].state != MessageState.HELD:
            return None
        intent = draft.intents.of(message.session_id)
        if intent is not None and intent.verb == "stop" and claims.is_owned(intent):
            return messages.update(draft, message.id, reason=rules.STOPPING)
        return messages.update(
            draft,
            message.id,
            state=MessageState.TYPING,
            owner=process.me().as_json(),
            carrier=load.carrier,
            added=load.added,
            before=before,
            attempts=message.attempts + 1,
            reason=None,
        )

    return context.registry.note(work)


def _is_repeated(context: Context, message: Message) -> bool:
    since = message.changed_at - _REPEATED_SECONDS
    return context.registry.peek(lambda draft: messages.was_typed_lately(draft, message, since), True)


def _hold(context: Context, message: Message, reason: str) -> bool:
    def work(draft: Transaction) -> None:
        if _stands(draft, message):
            messages.update(draft, message.id, state=MessageState.HELD, reason=reason, owner=None)

    if (message.state, message.reason) != (MessageState.HELD, reason):
        context.registry.note(work)
    return False


def _stands(draft: Transaction, message: Message) -> bool:
    """Tell whether a message is still as it was read: while one looks, another may have typed it."""
    now = messages.find(draft, message.id)
    return now is not None and (now.state, now.owner) == (message.state, message.owner)


def _end(
    context: Context,
    message: Message,
    state: MessageState,
    *,
    reason: str | None,
    evidence: str | None = None,
) -> bool:
    def work(draft: Transaction) -> None:
        if not _stands(draft, message):
            return
        done = messages.update(draft, message.id, state=state, reason=reason, evidence=evidence, owner=None)
        row = draft.get(done.session_id)
        draft.log(done.sender, "send", row, reason, message=done.id, state=state, evidence=evidence)

    context.registry.note(work)
    return True


def _settle(context: Context, message: Message) -> None:
    """Find out what became of a message whose typist died; it is never typed again."""
    row = _row_of(context, message)
    try:
        words = carrier.load(context, row, message).words if row else None
    except (OSError, NotAllowed):
        # Without its file nobody can say which words to look for.
        words = None
    found = None
    if row and words:
        trial = _trial(context, message, words, now_open(context, row) or "")
        found = receipt_proof.find_late(context, row, trial)
    if found:
        _end(context, message, MessageState.SUBMITTED, reason=None, evidence=found)
    else:
        _end(context, message, MessageState.UNCONFIRMED, reason=_TYPIST_DIED)
