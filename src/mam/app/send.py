"""Send words to a session: recorded first, typed only where that is safe, proven by the agent's own record.

A message is typed at most once. Who types says so durably before the first key; whoever finds such a
message without its typist looks for the proof and never types it again.
"""

from __future__ import annotations

import os
import secrets
import time

from mam.adapters.store import messages
from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.app import caller, conversations
from mam.app.hearing import overhear
from mam.app.sight import ALIVE, see_one
from mam.app.submit import look_at, proof_seconds, submit
from mam.app.transcript import now_open
from mam.app.versions import is_known, is_waiting, says_idle
from mam.core import message as rules
from mam.core.activity import WORKING
from mam.core.errors import DeliveryUnconfirmed, InvalidPrompt, NotAllowed, Refused, Unavailable
from mam.core.message import FAILED, FILE, HELD, INLINE, QUEUED, SUBMITTED, TYPING, UNCONFIRMED
from mam.core.row import current_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.agents.protocol import Kind, Look
    from mam.adapters.store.draft import Draft
    from mam.adapters.store.messages import Message
    from mam.app.world import World
    from mam.core.row import Row

_STEP = 0.01
_LOOK_AGAIN = 0.1
MAIL = ".mam-mail"


def send(
    world: World,
    target: str,
    text: str,
    *,
    when: str = rules.READY,
    is_command: bool = False,
    timeout: float = 0.0,
    message_id: str | None = None,
) -> dict[str, Any]:
    """Record a message and deliver it; return its receipt, which says what became of it."""
    began = time.monotonic()
    row = world.registry.view().find(target)
    text = _checked(text)
    me = caller.actor(world)
    if me == row["id"]:
        raise NotAllowed("a session does not write to itself")
    wanted = {
        "id": message_id or f"m_{secrets.token_hex(4)}",
        "session_id": row["id"],
        "sender": me,
        "text": text,
        "is_command": is_command,
        "wanted": when,
        "state": HELD,
        "reason": "not tried yet",
    }
    message = world.registry.note(lambda draft: _record(draft, wanted))
    while True:
        deliver(world, row["id"])
        message = _again(world, message.id)
        left = timeout - (time.monotonic() - began)
        if message.state in rules.ENDED or left <= 0:
            return receipt(message, row, (time.monotonic() - began) * 1000)
        time.sleep(min(_LOOK_AGAIN, left))


def receipt(message: Message, row: Row, elapsed_ms: float) -> dict[str, Any]:
    """Return what a sender is told."""
    return {
        "message_id": message.id,
        "session": row["name"],
        "state": HELD if message.state == TYPING else message.state,
        "evidence": message.evidence,
        "carrier": message.carrier,
        "attempts": message.attempts,
        "elapsed_ms": round(elapsed_ms, 1),
        "reason": message.reason,
    }


def deliver(world: World, session_id: str) -> None:
    """Deliver what is held for one session, in order, until one has to wait."""
    while True:
        waiting = world.registry.peek(lambda draft: messages.open_of(draft, session_id), _NOTHING)
        if not waiting:
            return
        first = waiting[0]
        if first.state == TYPING:
            if _lives(first.owner):
                return
            _settle_typed(world, first)
            continue
        if not _try(world, first):
            return


def deliver_all(world: World) -> None:
    """Deliver what is held for every session; cheap where nothing is."""
    waiting = world.registry.peek(messages.open_of, _NOTHING)
    for session_id in dict.fromkeys(one.session_id for one in waiting):
        deliver(world, session_id)


_NOTHING: list[Message] = []


def _checked(text: str) -> str:
    if not text.strip():
        raise InvalidPrompt("the message is empty")
    if len(text.encode("utf-8", "replace")) > rules.LARGEST:
        raise InvalidPrompt("a message is at most 1 MB long", hint="put it into a file and name the file")
    if "\0" in text:
        raise InvalidPrompt("a message holds no NUL")
    return text


def _record(draft: Draft, wanted: dict[str, Any]) -> Message:
    sender, target = wanted["sender"], wanted["session_id"]
    if sender != "user" and messages.find(draft, wanted["id"]) is None:
        lately = messages.count_since(draft, sender, target, draft.now - rules.PAIR_SECONDS)
        if lately >= rules.MOST_OF_A_PAIR:
            raise Refused(f"{lately} messages within a minute look like a loop", hint="wait a minute")
        same = messages.count_since(draft, sender, target, draft.now - rules.SAME_SECONDS, wanted["text"])
        if same:
            raise Refused("the same words were sent within 10 minutes", hint="mam inbox --sent shows them")
    return messages.add(draft, wanted)


def _again(world: World, message_id: str) -> Message:
    found = world.registry.peek(lambda draft: messages.find(draft, message_id), None)
    assert found is not None
    return found


def _lives(owner: dict[str, Any] | None) -> bool:
    identity = Identity.from_json(owner)
    return identity is not None and process.is_alive(identity)


def _try(world: World, message: Message) -> bool:
    """Type one message if nothing is in the way; False if it has to wait."""
    row = next((one for one in world.registry.view().rows if one.get("id") == message.session_id), None)
    if row is None:
        _end(world, message, FAILED, reason="its session was forgotten")
        return True
    kind = world.kind(row["agent"])
    if not kind.reads_screen:
        _end(world, message, FAILED, reason=f"mam cannot see whether {kind.name} waits for words")
        return True
    reason = _reason(world, row, message)
    if reason:
        _hold(world, message, reason)
        return False
    words, carrier = _words(world, row, message)
    if words is None:
        _end(world, message, FAILED, reason=f"{kind.name} would take these words for a command")
        return True
    row = conversations.note_open(world, row)
    conversation, stores = current_conversation(row) or "", conversations.stores_of(world, row)
    before = kind.record_size(conversation, stores)
    if not _begin(world, message, carrier, before):
        return False
    # The look that decided is older than the claim: a dialog may have opened since.
    look = look_at(world, row)
    reason = _seen_reason(kind, look, message)
    if reason:
        _hold(world, message, reason)
        return False
    try:
        submit(world, row, words)
    except DeliveryUnconfirmed as error:
        _end(world, message, UNCONFIRMED, reason=error.message)
        return True
    except Unavailable as error:
        # A guard of tmux refused it: nothing was typed.
        _hold(world, message, error.message)
        return False
    taken = QUEUED if look.state == WORKING else SUBMITTED
    _prove(world, row, message, words, before=before, taken=taken)
    return True


def _reason(world: World, row: Row, message: Message) -> str | None:
    kind = world.kind(row["agent"])
    sight = see_one(world, row)
    if sight.state != ALIVE:
        return rules.not_there(sight.state)
    found = _seen_reason(kind, look_at(world, row), message)
    if found is None and is_waiting(world, row):
        return "it waits for a person, as its own word is"
    if found is None and is_known(world, row) is False and not says_idle(world, row):
        return f"mam was not tested with this version of {kind.name}, and only its screen says that it waits"
    return found


def _seen_reason(kind: Kind, look: Look, message: Message) -> str | None:
    return rules.reason_to_hold(
        state=look.state,
        dialog=look.dialog,
        box=look.box,
        queues=kind.queues and not message.is_command,
        when=message.wanted,
    )


def _words(world: World, row: Row, message: Message) -> tuple[str | None, str]:
    """Return what is typed, and whether it is the message itself or where it lies."""
    kind = world.kind(row["agent"])
    if message.is_command:
        return message.text, INLINE
    text = message.text
    if rules.is_plain(text, kind.longest_text):
        words = kind.typed(_signed(world, message, text))
        if words is not None:
            return words, INLINE
    path = _write_mail(row, message, _signed(world, message, text))
    return kind.typed(rules.pointer(path, message.id)), FILE


def _signed(world: World, message: Message, text: str) -> str:
    if message.sender == "user":
        return text
    rows = world.registry.view().rows
    sender = next((one for one in rows if one.get("id") == message.sender), None)
    name, role = (sender["name"], sender.get("role")) if sender else (message.sender, None)
    return f"{rules.header(message.id, name, role)}\n{text}"


def _write_mail(row: Row, message: Message, text: str) -> str:
    """Put a message into a file that its agent may read; return its path from the workspace."""
    folder = os.path.join(row["workspace"], MAIL)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.path.islink(folder):
        raise NotAllowed(f"{folder} is a symbolic link", hint="remove it; mam makes its own")
    for name, content in ((".gitignore", "*\n"), (f"{message.id}.md", text)):
        path = os.path.join(folder, name)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode("utf-8", "surrogateescape"))
    return f"{MAIL}/{message.id}.md"


def _begin(world: World, message: Message, carrier: str, before: int) -> bool:
    """Say durably that this process types the message; False if somebody else does."""

    def work(draft: Draft) -> bool:
        waiting = messages.open_of(draft, message.session_id)
        if not waiting or waiting[0].id != message.id or waiting[0].state != HELD:
            return False
        messages.update(
            draft,
            message.id,
            state=TYPING,
            owner=process.me().as_json(),
            carrier=carrier,
            before=before,
            attempts=message.attempts + 1,
            reason=None,
        )
        return True

    return world.registry.note(work)


def _hold(world: World, message: Message, reason: str) -> None:
    if (message.state, message.reason) != (HELD, reason):
        world.registry.note(
            lambda draft: messages.update(draft, message.id, state=HELD, reason=reason, owner=None)
        )


def _end(
    world: World, message: Message, state: str, *, reason: str | None, evidence: str | None = None
) -> None:
    def work(draft: Draft) -> None:
        done = messages.update(draft, message.id, state=state, reason=reason, evidence=evidence, owner=None)
        row = draft.get(done.session_id)
        draft.log(done.sender, "send", row, reason, message=done.id, state=state, evidence=evidence)

    world.registry.note(work)


def _prove(world: World, row: Row, message: Message, words: str, *, before: int, taken: str) -> None:
    deadline = time.monotonic() + proof_seconds(words)
    while True:
        evidence = _evidence(world, row, message, words, before)
        if evidence:
            _end(world, message, taken, reason=None, evidence=evidence)
            return
        if time.monotonic() > deadline:
            break
        time.sleep(_STEP)
    _end(world, message, UNCONFIRMED, reason="nothing proves that it was taken; look: mam read")


def _evidence(world: World, row: Row, message: Message, words: str, before: int) -> str | None:
    """Return what proves that the agent took these words; a command leaves nothing but an empty box."""
    kind = world.kind(row["agent"])
    if message.is_command:
        return "screen" if look_at(world, row).box != "draft" else None
    if any(heard.prompt == words for heard in overhear(world, row)):
        return "hook"
    stores = conversations.stores_of(world, row)
    said = kind.has_submitted(words, current_conversation(row) or now_open(world, row) or "", stores, before)
    return "transcript" if said else None


def _settle_typed(world: World, message: Message) -> None:
    """Find out what became of a message whose typist died; it is never typed again."""
    row = next((one for one in world.registry.view().rows if one.get("id") == message.session_id), None)
    words, _ = _words(world, row, message) if row else (None, "")
    proof = _evidence(world, row, message, words, message.before or 0) if row and words else None
    if proof and not message.is_command:
        _end(world, message, SUBMITTED, reason=None, evidence=proof)
    else:
        _end(world, message, UNCONFIRMED, reason="who typed it died, and nothing proves that it was taken")
