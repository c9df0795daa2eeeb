"""The verb `send`: record a message, then deliver it at once or hold it until the reason ends."""

from __future__ import annotations

import time

from mam.adapters.store.tables import messages
from mam.adapters.system import load_adjusted_clock
from mam.app.context import resident_start_and_lock
from mam.app.context.authority import check_sender
from mam.app.messages.delivery import comes_next, deliver
from mam.app.messages.displayed_reason import displayed_reason
from mam.app.messages.receipt_proof import proof_seconds
from mam.core import message_rules as rules
from mam.core.errors import Conflict, NotAllowed, Refused, SessionNotFound
from mam.core.message_rules import MessageState, Reason, ReasonCode
from mam.core.session_row import launch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_STEP = 0.1
# How long a sender without a timeout still waits while earlier messages are being typed.
_PATIENCE = 15.0


def send(
    context: Context,
    caller: Caller,
    target: str,
    text: str,
    *,
    when: str = rules.READY,
    is_command: bool = False,
    timeout: float = 0.0,
    message_id: str | None = None,
    conversation: str | None = None,
) -> dict[str, Any]:
    """Record a message and deliver it; return its receipt, which tells what became of it."""
    began = time.monotonic()
    timed_out_at: float | None = None
    row = context.registry.view().find(target)
    text = rules.parse_command(text) if is_command else rules.check_text(text)
    me = check_sender(context, caller, row)
    fields = new_message(
        message_id, me, row, text, when=when, is_command=is_command, conversation=conversation
    )
    message = context.registry.note(lambda transaction: _record(transaction, fields, row))
    while True:
        deliver(context, row["id"])
        message = _reload(context, message)
        seconds_left = timeout - (time.monotonic() - began)
        if seconds_left <= 0 and timed_out_at is None:
            timed_out_at = load_adjusted_clock.now()
        is_waited_for = timed_out_at is None or _ends_soon(
            context, message, load_adjusted_clock.now() - timed_out_at
        )
        if message.state in rules.AT_REST or not is_waited_for:
            if message.state == MessageState.HELD:
                # The resident delivers the message when the reason ends.
                resident_start_and_lock.ensure(context)
            return _receipt(context, message, row, (time.monotonic() - began) * 1000)
        time.sleep(min(_STEP, seconds_left) if seconds_left > 0 else _STEP)


def new_message(
    message_id: str | None,
    sender: str,
    row: Row,
    text: str,
    *,
    when: str = rules.READY,
    is_command: bool = False,
    conversation: str | None = None,
) -> dict[str, Any]:
    """Return the fields of a new message, as they are recorded before the first try to deliver it."""
    return {
        "id": messages.new_id() if message_id is None else rules.parse_id(message_id),
        "session_id": row["id"],
        "sender": sender,
        "text": text,
        "is_command": is_command,
        "wanted": when,
        "state": MessageState.HELD,
        "reason": rules.NOT_TRIED,
        "conversation": conversation,
    }


def _ends_soon(context: Context, message: Message, waited: float) -> bool:
    """Tell whether a message will end soon: mam is typing it, or only messages that are typed come first."""
    if message.state == MessageState.TYPING:
        # The typing process may be suspended (SIGSTOP) for any time, so the wait has an end.
        return waited < _PATIENCE + proof_seconds(message.text)
    is_new = message.reason_code == ReasonCode.NOT_TRIED and waited < _PATIENCE
    return is_new and comes_next(context, message)


def _receipt(context: Context, message: Message, row: Row, elapsed_ms: float) -> dict[str, Any]:
    """Return what became of a message, for its sender."""
    return {
        "message_id": message.id,
        "session": row["name"],
        "state": MessageState.HELD if message.state == MessageState.TYPING else message.state,
        "evidence": message.evidence,
        "carrier": message.carrier,
        "added": message.added,
        "attempts": message.attempts,
        "elapsed_ms": round(elapsed_ms, 1),
        "reason": context.registry.peek(lambda transaction: displayed_reason(transaction, message), None),
    }


def withdraw(context: Context, caller: Caller, message_id: str, reason: str) -> bool:
    """Withdraw a held or parked message; return False where its typing has begun already.

    A session may withdraw only its own messages.
    """
    me = caller.name

    def work(transaction: Transaction) -> bool:
        message = messages.find(transaction, message_id)
        if message is None or message.state not in (MessageState.HELD, MessageState.PARKED):
            return False
        if me not in ("user", message.sender):
            raise NotAllowed(f"this session did not send {message.id}")
        messages.update(transaction, message_id, state=MessageState.FAILED, reason=reason)
        return True

    return context.registry.note(work)


def _record(transaction: Transaction, fields: dict[str, Any], found: Row) -> Message:
    """Record a message once; refuse an id of another message, and messages that look like a loop.

    `found` is the row of the recipient as the sender found it.
    """
    sender, target, now = fields["sender"], fields["session_id"], transaction.now
    earlier = messages.find(transaction, fields["id"])
    if earlier is not None and earlier.session_id != target:
        row = transaction.get(earlier.session_id)
        recipient = f"'{row['name']}'" if row else "another session"
        raise Conflict(f"{earlier.id} was sent to {recipient}", hint="leave out the id, or give another")
    if earlier is not None and (earlier.text, earlier.sender) != (fields["text"], sender):
        raise Conflict(
            f"{earlier.id} is a message with another text or sender",
            hint="leave out the id, or give another",
        )
    if earlier is None:
        _check_launch(transaction, found)
    if sender != "user" and earlier is None:
        recent = messages.count_since(transaction, sender, target, now - rules.PAIR_SECONDS)
        if recent >= rules.MOST_OF_A_PAIR:
            raise Refused(f"{recent} messages within a minute look like a loop", hint="wait a minute")
        same = messages.count_since(transaction, sender, target, now - rules.SAME_SECONDS, fields["text"])
        if same:
            raise Refused("the same text was sent within 10 minutes", hint="mam inbox --sent shows it")
    return messages.add(transaction, fields)


def _check_launch(transaction: Transaction, found: Row) -> None:
    """Refuse a message for a session that was forgotten or started anew since its sender found it.

    The verbs end the messages that are recorded by then. A resume continues the conversation, so the message
    is for it, too: unlike a new start, it counts itself in the row.
    """
    name, current = found["name"], transaction.get(found["id"])
    if current is None:
        raise SessionNotFound(f"'{name}' was forgotten before the message was recorded", hint="mam ls")
    is_resumed = current.get("resume_count") != found.get("resume_count")
    if launch_of(current) != launch_of(found) and not is_resumed:
        raise Conflict(
            f"'{name}' was started anew before the message was recorded",
            hint="repeat the command to send it to the new agent",
        )


def _reload(context: Context, message: Message) -> Message:
    """Return a message as it is now; of one that is deleted, as whose session was forgotten, how it ended."""
    current = context.registry.peek(lambda transaction: messages.find(transaction, message.id), None)
    if current is not None:
        return current
    end = context.registry.peek(lambda transaction: messages.logged_end(transaction, message), None)
    if end is None:
        raise Conflict(
            f"the state of this root was replaced, and does not have message {message.id} any more",
            hint="look whether the agent has it, and send it again: mam read",
        )
    message.state, reason = end
    message.reason = None if reason is None else Reason(reason)
    message.reason_code = None
    return message
