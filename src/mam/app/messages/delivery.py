"""Delivering what is held: typed only where that is safe, in order, and proven by the agent's own record.

A message is typed at most once. Who types says so durably before the first key; whoever finds such a
message without its typist looks for the proof and never types it again.
"""

from __future__ import annotations

import itertools
import time

from mam.adapters.store.tables import messages
from mam.adapters.system import load_adjusted_clock, process
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
from mam.core.message import FAILED, HELD, QUEUED, SUBMITTED, TYPING, UNCONFIRMED
from mam.core.session_row import current_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import Kind, ScreenState
    from mam.adapters.store.tables.messages import Message
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import World
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


def deliver(world: World, session_id: str) -> None:
    """Deliver what is held for one session, in order, until one has to wait."""
    while True:
        waiting = world.registry.peek(lambda draft: messages.open_of(draft, session_id), _NOTHING)
        if not waiting:
            return
        first = waiting[0]
        if first.state == TYPING:
            if _is_typed(first):
                return
            _settle(world, first)
        elif not _try(world, first):
            return


def comes_next(world: World, message: Message) -> bool:
    """Tell whether a held message can be tried in a moment: each one before it is being typed or is new."""
    waiting = world.registry.peek(lambda draft: messages.open_of(draft, message.session_id), _NOTHING)
    before = itertools.takewhile(lambda one: one.id != message.id, waiting)
    return bool(waiting) and all(
        _is_typed(one) if one.state == TYPING else one.reason == rules.NOT_TRIED for one in before
    )


def is_typed_to(world: World, session_id: str) -> bool:
    """Tell whether somebody types a message into a session just now."""
    waiting = world.registry.peek(lambda draft: messages.open_of(draft, session_id), _NOTHING)
    return any(one.state == TYPING and _is_typed(one) for one in waiting)


def deliver_all(world: World) -> None:
    """Deliver what is held for every session; cheap where nothing is."""
    waiting = world.registry.peek(messages.open_of, _NOTHING)
    for session_id in dict.fromkeys(one.session_id for one in waiting):
        deliver(world, session_id)


def _is_typed(message: Message) -> bool:
    """Tell whether somebody is typing a message: who says so lives, and has not given it up."""
    owner = Identity.from_json(message.owner)
    if owner is None or not process.is_alive(owner):
        return False
    return owner != process.me() or message.id in _at_work


def _row_of(world: World, message: Message) -> Row | None:
    return next((one for one in world.registry.view().rows if one.get("id") == message.session_id), None)


def _try(world: World, message: Message) -> bool:
    """Type one message if nothing is in the way; False if it has to wait."""
    row = _row_of(world, message)
    if row is None:
        return _end(world, message, FAILED, reason="its session was forgotten")
    kind = world.kind(row["agent"])
    if not kind.reads_screen:
        return _end(world, message, FAILED, reason=f"mam cannot see whether {kind.name} waits for words")
    seen = _look(world, row)
    reason = _reason(world, row, message, seen)
    if reason:
        return _hold(world, message, reason)
    try:
        load = carrier.load(world, row, message)
    except (OSError, NotAllowed) as error:
        return _end(world, message, FAILED, reason=f"its file could not be written: {error}")
    if load.words is None:
        return _end(world, message, FAILED, reason=f"{kind.name} would take these words for a command")
    try:
        row = conversations.note_open(world, row)
    except ConversationBusy as error:
        return _hold(world, message, error.message)
    conversation = now_open(world, row) or ""
    before = kind.record_size(conversation, conversations.stores_of(world, row))
    _at_work.add(message.id)
    try:
        claimed = _begin(world, message, load, before)
        if claimed is None or claimed.state != TYPING:
            return False
        try:
            trial = _trial(world, claimed, load.words, conversation)
            return _type(world, row, claimed, trial, seen.look.state)
        except BaseException:
            # The process lives on, and nobody else would dare to touch what it says it is typing.
            _end(world, claimed, UNCONFIRMED, reason="its typing was interrupted; look: mam read")
            raise
    finally:
        _at_work.discard(message.id)


def _trial(world: World, message: Message, words: str, conversation: str) -> receipt_proof.DeliveryProof:
    return receipt_proof.DeliveryProof(
        message,
        words,
        conversation=conversation,
        before=message.before or 0,
        since=message.changed_at,
        is_repeated=_is_repeated(world, message),
    )


def _look(world: World, row: Row) -> PaneLook:
    """Look at a session; what was typed a moment ago may still be shown, though it was taken."""
    since, deadline = world.now() - _SHOWN_SECONDS, load_adjusted_clock.now() + _SHOWN_SECONDS
    while True:
        seen = look_until_clear(lambda: glance(world, row))
        if seen.look.box != "draft" or load_adjusted_clock.now() > deadline:
            return seen
        if not world.registry.peek(lambda draft: messages.was_taken_lately(draft, row["id"], since), False):
            return seen
        time.sleep(_STEP)


def _type(world: World, row: Row, message: Message, trial: receipt_proof.DeliveryProof, state: str) -> bool:
    """Type it after another look; what no screen tells is still as it was known to be a moment ago."""
    kind = world.kind(row["agent"])
    taken = SUBMITTED

    def check(look: ScreenState) -> str | None:
        return _reason_seen(kind, look, message, state if look.state == UNKNOWN else look.state)

    try:
        seen = submit(
            world,
            row,
            trial.words,
            check,
            is_command=message.is_command,
            is_resting=state == IDLE,
        )
        taken = QUEUED if (state if seen.state == UNKNOWN else seen.state) == WORKING else SUBMITTED
    except DeliveryUnconfirmed as error:
        # Somebody at the terminal may have pressed Enter.
        found = None if message.is_command else receipt_proof.find(world, row, trial)
        state, reason = (SUBMITTED, None) if found else (UNCONFIRMED, error.message)
        return _end(world, message, state, reason=reason, evidence=found)
    except TerminalsDown as error:
        # It may have been typed.
        world.progress(error.message)
    except PaneGone as error:
        # A guard refused it: nothing was typed, or nothing of it is left.
        return _hold(world, message, error.message)
    found = receipt_proof.wait_for(world, row, trial)
    if found == "hook" and state == WORKING and receipt_proof.was_working(world, row, trial):
        # The screen may not show yet, or never, that the agent works.
        taken = QUEUED
    if found:
        return _end(world, message, taken, reason=None, evidence=found)
    return _end(world, message, UNCONFIRMED, reason=_UNPROVEN)


def _reason(world: World, row: Row, message: Message, seen: PaneLook) -> str | None:
    """Return why a message cannot be typed now, by all that is known."""
    if seen.absence:
        return rules.not_there(seen.absence)
    if seen.sight.pane is not None and seen.sight.pane.in_mode:
        return f"somebody is scrolling or searching in pane {seen.pane_id}"
    kind, heard = world.kind(row["agent"]), known(world, row, seen)
    verdict = heard.verdict(world.now()).state
    look = seen.look
    if look.state == UNKNOWN or verdict == WORKING:
        look.state = verdict
    found = _reason_seen(kind, look, message, look.state)
    if found is None and (verdict == WAITING or is_asking(heard.evidence)):
        return rules.WAITS
    if found is None and is_known(world, row) is False and not says_idle(heard, world.now()):
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


def _begin(world: World, message: Message, load: Load, before: int) -> Message | None:
    """Say durably that this process types the message; None if somebody else does, or did.

    A stop types as well: it says so before it looks for messages that are typed, and is seen here.
    """

    def work(draft: Transaction) -> Message | None:
        waiting = messages.open_of(draft, message.session_id)
        if not waiting or waiting[0].id != message.id or waiting[0].state != HELD:
            return None
        intent = draft.intents.of(message.session_id)
        if intent is not None and intent.verb == "stop" and claims.is_owned(intent):
            return messages.update(draft, message.id, reason=rules.STOPPING)
        return messages.update(
            draft,
            message.id,
            state=TYPING,
            owner=process.me().as_json(),
            carrier=load.carrier,
            added=load.added,
            before=before,
            attempts=message.attempts + 1,
            reason=None,
        )

    return world.registry.note(work)


def _is_repeated(world: World, message: Message) -> bool:
    since = message.changed_at - _REPEATED_SECONDS
    return world.registry.peek(lambda draft: messages.was_typed_lately(draft, message, since), True)


def _hold(world: World, message: Message, reason: str) -> bool:
    def work(draft: Transaction) -> None:
        if _stands(draft, message):
            messages.update(draft, message.id, state=HELD, reason=reason, owner=None)

    if (message.state, message.reason) != (HELD, reason):
        world.registry.note(work)
    return False


def _stands(draft: Transaction, message: Message) -> bool:
    """Tell whether a message is still as it was read: while one looks, another may have typed it."""
    now = messages.find(draft, message.id)
    return now is not None and (now.state, now.owner) == (message.state, message.owner)


def _end(
    world: World, message: Message, state: str, *, reason: str | None, evidence: str | None = None
) -> bool:
    def work(draft: Transaction) -> None:
        if not _stands(draft, message):
            return
        done = messages.update(draft, message.id, state=state, reason=reason, evidence=evidence, owner=None)
        row = draft.get(done.session_id)
        draft.log(done.sender, "send", row, reason, message=done.id, state=state, evidence=evidence)

    world.registry.note(work)
    return True


def _settle(world: World, message: Message) -> None:
    """Find out what became of a message whose typist died; it is never typed again."""
    row = _row_of(world, message)
    try:
        words = carrier.load(world, row, message).words if row else None
    except (OSError, NotAllowed):
        # Without its file nobody can say which words to look for.
        words = None
    found = None
    if row and words:
        trial = _trial(world, message, words, now_open(world, row) or "")
        found = receipt_proof.find_late(world, row, trial)
    if found:
        _end(world, message, SUBMITTED, reason=None, evidence=found)
    else:
        _end(world, message, UNCONFIRMED, reason=_TYPIST_DIED)
