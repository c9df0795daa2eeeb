"""Correcting the receipt of a message when the proof comes later than mam waited for it.

An `unconfirmed` message becomes `submitted`, and so does a `queued` one once its turn begins. If the launch
ends before that, a queued message is `unconfirmed`: the queue is gone with the agent. What failed or was
withdrawn stays so. The resident does this, and where none runs the next command that changes something; a
stop and the record of a death do it for their session. mam reads a transcript again only if it has grown.
`adapters/store/tables/messages.py` corrects a message whose hook comes late.
"""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.app.context import setting_aside
from mam.app.messages import receipt_proof
from mam.app.observation import conversations
from mam.core.errors import Unavailable
from mam.core.message_rules import ENDED_AFTER_QUEUE, ENDED_IN_QUEUE, MessageState
from mam.core.session_row import is_running, launch_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Kind
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.message_rules import Reason
    from mam.core.session_row import Row

_NOTHING: list[Message] = []
# More than an agent writes around a text in one line of its transcript.
_LONGEST_LINE = 64 * 1024


def correct_receipts(context: Context, session_id: str | None = None) -> None:
    """Look for the proof of each message that is unconfirmed or queued; of one session, or of all."""
    _correct_all(
        context,
        context.registry.peek(lambda transaction: messages.awaiting_proof(transaction, session_id), _NOTHING),
    )


def settle_queue(context: Context, session_id: str, *, has_ended: bool = False) -> None:
    """Settle what a launch that has ended had in its queue.

    `has_ended` says so before the row does. Where nothing can be written now, a later command does it.
    """
    try:
        _correct_all(
            context,
            context.registry.peek(lambda transaction: messages.queued(transaction, session_id), _NOTHING),
            has_ended=has_ended,
        )
    except Unavailable:
        return


def _correct_all(context: Context, waiting: list[Message], *, has_ended: bool = False) -> None:
    for message in waiting:
        row = context.registry.view().by_id(message.session_id)
        if row is None:
            continue
        try:
            _correct_if_shown(context, row, message, has_ended=has_ended)
        except Exception as error:
            if not setting_aside.is_of_item(error):
                raise
            problem = f"mam cannot look for the proof of message {message.id}"
            setting_aside.note(context, setting_aside.MESSAGE, message.id, error, problem)


def _correct_if_shown(context: Context, row: Row, message: Message, *, has_ended: bool) -> None:
    typed = message.typed
    assert typed is not None
    kind, stores = context.kind(row["agent"]), conversations.stores_of(context, row)
    is_same_launch = typed.launch == launch_of(row)
    # A new launch does not have the queue of the former one.
    has_ended = has_ended or not (is_same_launch and is_running(row))
    is_over = has_ended and message.state == MessageState.QUEUED
    candidates = {typed.conversation}
    if is_same_launch:
        # The first text after a /clear begins a conversation that was not known when mam began to type.
        candidates.add(conversations.open_conversation(context, row) or "")
    # The sizes are read before the transcripts: what grows meanwhile is looked at again.
    sizes = {conversation: kind.transcript_size(conversation, stores) for conversation in candidates}
    if sizes == message.looked and not is_over:
        return
    proof = receipt_proof.DeliveryProof(
        message, typed.text, conversation=typed.conversation, before=message.before or 0, since=typed.at
    )
    others = context.registry.peek(
        lambda transaction: receipt_proof.with_same_text(transaction, proof), _NOTHING
    )
    if any(other.state == MessageState.TYPING for other in others):
        # Whoever types the same text now looks for its proof, too.
        return
    is_shown = any(
        (is_over or _may_be_new(kind, proof, conversation, stores, message.looked.get(conversation)))
        and receipt_proof.is_in_transcript(context, row, proof, conversation, others)
        for conversation in candidates
    )
    reason = _reason_of_end(kind, proof, candidates, stores) if is_over and not is_shown else None

    def work(transaction: Transaction) -> None:
        current = messages.find(transaction, message.id)
        if current is None or current.state != message.state:
            return
        if not is_shown:
            messages.note_look(transaction, message.id, sizes)
            if reason is not None:
                _end_in_queue(transaction, current, reason)
        elif _states(receipt_proof.with_same_text(transaction, proof)) == _states(others):
            # Else another message with this text was proven meanwhile, perhaps by the same line.
            messages.correct(transaction, current, "transcript")

    context.registry.note(work)


def _reason_of_end(
    kind: Kind, proof: receipt_proof.DeliveryProof, candidates: set[str], stores: Mapping[str, str]
) -> Reason:
    """Return why a message that an ended agent had in its queue is unconfirmed."""
    counts = [
        kind.count_taken(proof.text, conversation, stores, proof.start_in(conversation, kind))
        for conversation in candidates
        if conversation
    ]
    return ENDED_IN_QUEUE if counts and not any(count != 0 for count in counts) else ENDED_AFTER_QUEUE


def _end_in_queue(transaction: Transaction, message: Message, reason: Reason) -> None:
    state = MessageState.UNCONFIRMED
    messages.update(transaction, message.id, state=state, reason=reason, evidence=None)
    row = transaction.get(message.session_id)
    transaction.log(message.sender, "send", row, reason, message=message.id, state=state)


def _may_be_new(
    kind: Kind,
    proof: receipt_proof.DeliveryProof,
    conversation: str,
    stores: Mapping[str, str],
    looked: int | None,
) -> bool:
    """Tell whether what a transcript gained since the last look may show the text; cheap if it does not.

    The last look may have come in the middle of a line, so this reads from before that line.
    """
    if looked is None:
        return True
    since = max(proof.start_in(conversation, kind), looked - _LONGEST_LINE - 6 * len(proof.text))
    return proof.count(kind, conversation, stores, since) != 0


def _states(found: list[Message]) -> list[tuple[str, MessageState]]:
    return [(message.id, message.state) for message in found]
