"""Send words to a session: recorded first, then delivered at once or held until the reason ends."""

from __future__ import annotations

import time

from mam.adapters.store.tables import messages
from mam.adapters.system import load_adjusted_clock
from mam.app.context import start_resident
from mam.app.context.authority import check_writer
from mam.app.messages.delivery import comes_next, deliver
from mam.app.messages.enter_text import proof_seconds
from mam.app.messages.inbox import reason_of
from mam.core import message as rules
from mam.core.errors import Conflict, InvalidPrompt, NotAllowed, Refused
from mam.core.message import MessageState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.tables.messages import Message
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_LOOK_AGAIN = 0.1
# How long others may be typed first, before a sender who would not wait is told that it is held.
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
    """Record a message and deliver it; return its receipt, which says what became of it."""
    began = time.monotonic()
    over: float | None = None
    row = context.registry.view().find(target)
    text = rules.parse_command(text) if is_command else _checked(text)
    me = check_writer(context, caller, row)
    wanted = written(message_id, me, row, text, when=when, is_command=is_command, conversation=conversation)
    message = context.registry.note(lambda draft: _record(draft, wanted))
    while True:
        deliver(context, row["id"])
        message = _again(context, message.id)
        left = timeout - (time.monotonic() - began)
        if left <= 0 and over is None:
            over = load_adjusted_clock.now()
        is_waited_for = over is None or _is_next(context, message, load_adjusted_clock.now() - over)
        if message.state in rules.ENDED or not is_waited_for:
            if message.state == MessageState.HELD:
                # Somebody has to be awake when the reason ends.
                start_resident.ensure(context)
            return _receipt(context, message, row, (time.monotonic() - began) * 1000)
        time.sleep(min(_LOOK_AGAIN, left) if left > 0 else _LOOK_AGAIN)


def written(
    message_id: str | None,
    sender: str,
    row: Row,
    text: str,
    *,
    when: str = rules.READY,
    is_command: bool = False,
    conversation: str | None = None,
) -> dict[str, Any]:
    """Return a message as it is recorded before anybody tries to deliver it."""
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


def _is_next(context: Context, message: Message, waited: float) -> bool:
    """Tell whether what becomes of a message is known in a moment: it, or one before it, is being typed."""
    if message.state == MessageState.TYPING:
        # Who types it may have been stopped, and then nobody knows for how long.
        return waited < _PATIENCE + proof_seconds(message.text)
    is_new = message.reason == rules.NOT_TRIED and waited < _PATIENCE
    return is_new and comes_next(context, message)


def _receipt(context: Context, message: Message, row: Row, elapsed_ms: float) -> dict[str, Any]:
    """Return what a sender is told."""
    return {
        "message_id": message.id,
        "session": row["name"],
        "state": MessageState.HELD if message.state == MessageState.TYPING else message.state,
        "evidence": message.evidence,
        "carrier": message.carrier,
        "added": message.added,
        "attempts": message.attempts,
        "elapsed_ms": round(elapsed_ms, 1),
        "reason": context.registry.peek(lambda draft: reason_of(draft, message), message.reason),
    }


def withdraw(context: Context, caller: Caller, message_id: str, reason: str) -> bool:
    """Take a message back that nobody has begun to type; False where it is too late.

    A session takes back its own only.
    """
    me = caller.name

    def work(draft: Transaction) -> bool:
        found = messages.find(draft, message_id)
        if found is None or found.state != MessageState.HELD:
            return False
        if me not in ("user", found.sender):
            raise NotAllowed(f"{found.id} was not sent by this session")
        messages.update(draft, message_id, state=MessageState.FAILED, reason=reason)
        return True

    return context.registry.note(work)


def _checked(text: str) -> str:
    if not text.strip():
        raise InvalidPrompt("the message is empty")
    if len(text.encode("utf-8", "replace")) > rules.LARGEST:
        raise InvalidPrompt("a message is at most 1 MB long", hint="put it into a file and name the file")
    if "\0" in text:
        raise InvalidPrompt("a message holds no NUL")
    return text


def _record(draft: Transaction, wanted: dict[str, Any]) -> Message:
    sender, target = wanted["sender"], wanted["session_id"]
    known = messages.find(draft, wanted["id"])
    if known is not None and known.session_id != target:
        row = draft.get(known.session_id)
        to = f"'{row['name']}'" if row else "another session"
        raise Conflict(f"{known.id} was sent to {to}", hint="leave out the id, or give another")
    if known is not None and (known.text, known.sender) != (wanted["text"], sender):
        raise Conflict(
            f"{known.id} holds other words, or another's", hint="leave out the id, or give another"
        )
    if sender != "user" and known is None:
        lately = messages.count_since(draft, sender, target, draft.now - rules.PAIR_SECONDS)
        if lately >= rules.MOST_OF_A_PAIR:
            raise Refused(f"{lately} messages within a minute look like a loop", hint="wait a minute")
        same = messages.count_since(draft, sender, target, draft.now - rules.SAME_SECONDS, wanted["text"])
        if same:
            raise Refused("the same words were sent within 10 minutes", hint="mam inbox --sent shows them")
    return messages.add(draft, wanted)


def _again(context: Context, message_id: str) -> Message:
    found = context.registry.peek(lambda draft: messages.find(draft, message_id), None)
    assert found is not None
    return found
