"""Parked messages: kept, listed, and typed by nobody before a person releases them.

Messages are parked when mam cannot tell whether their senders still want them here: after another machine or
another user wrote the database, or in a copy of a root.
"""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.app.context import resident_start_and_lock
from mam.app.context.authority import require_person
from mam.app.messages.delivery import deliver, never_typed
from mam.core.message_rules import NOT_TRIED, MessageState, Reason, ReasonCode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]
    Names = dict[str | None, str]


def park_messages(transaction: Transaction, reason: str) -> list[Message]:
    """Park every message that is held or being typed; return them."""
    return [park(transaction, message, reason) for message in messages.open_of(transaction)]


def park(transaction: Transaction, message: Message, reason: str) -> Message:
    """Park a message that is held or being typed; return it."""
    code = ReasonCode.PARKED if message.state == MessageState.HELD else ReasonCode.PARKED_WHILE_TYPED
    return messages.update(
        transaction, message.id, state=MessageState.PARKED, reason=Reason(reason, code), owner=None
    )


def release_in(transaction: Transaction, message: Message, by: str) -> None:
    """Give a parked message back the state that it had.

    One that was being typed gets no owner. Then mam looks for its proof and in the input box, as after the
    death of its sender, and never types it again.
    """
    was_typed = message.reason_code == ReasonCode.PARKED_WHILE_TYPED
    state = MessageState.TYPING if was_typed else MessageState.HELD
    messages.update(transaction, message.id, state=state, reason=None if was_typed else NOT_TRIED, owner=None)
    transaction.log(by, "release", transaction.get(message.session_id), message=message.id)


def release(context: Context, caller: Caller, message_ids: Sequence[str] | None = None) -> list[Document]:
    """Release parked messages, or all; return `{message_id, session, state, released, reason}` of each.

    A released message is for the launch that its session has now, or gets by the next resume. A message that
    no launch could get stays parked, and the reason says why.
    """
    require_person(caller, "mam inbox --release")
    none: list[Message] = []
    if message_ids is None:
        message_ids = [message.id for message in context.registry.peek(messages.parked, none)]
    refusals = {message_id: _release(context, caller, message_id) for message_id in message_ids}
    released = [_find(context, message_id) for message_id, refusal in refusals.items() if refusal is None]
    for session_id in dict.fromkeys(message.session_id for message in released if message is not None):
        deliver(context, session_id)
    if released:
        resident_start_and_lock.ensure(context)
    names: Names = {row.get("id"): row["name"] for row in context.registry.view().rows}
    return [
        _outcome(_find(context, message_id), message_id, refusal, names)
        for message_id, refusal in refusals.items()
    ]


def _outcome(message: Message | None, message_id: str, refusal: str | None, names: Names) -> Document:
    state = message.state if message is not None else None
    return {
        "message_id": message_id,
        "session": names.get(message.session_id, message.session_id) if message is not None else None,
        "state": MessageState.HELD if state == MessageState.TYPING else state,
        "released": refusal is None,
        "reason": refusal or (message.reason and str(message.reason) if message is not None else None),
    }


def _release(context: Context, caller: Caller, message_id: str) -> str | None:
    """Release one message; return why it is not released."""
    message = _find(context, message_id)
    if message is None:
        return "there is no such message"
    row = context.registry.view().by_id(message.session_id)
    if row is None:
        return "its session is not registered here"
    if failure := never_typed(context, row):
        return failure

    def work(transaction: Transaction) -> str | None:
        current = messages.find(transaction, message_id)
        if current is None or current.state != MessageState.PARKED:
            return "it is not parked"
        release_in(transaction, current, caller.name)
        return None

    return context.registry.note(work)


def _find(context: Context, message_id: str) -> Message | None:
    return context.registry.peek(lambda transaction: messages.find(transaction, message_id), None)
