"""The proof that an agent took a message: its hook, its transcript, or for a command its screen or end."""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.adapters.store.tables.evidence import recorded
from mam.adapters.system.deadline import Deadline
from mam.app.observation import conversations
from mam.app.observation.newest_hook_reports import COARSE_SECONDS, pending_events, recorded_reports
from mam.app.observation.pane_look import SHELL, look_at_pane
from mam.core.activity import WORKING
from mam.core.liveness_values import Liveness
from mam.core.message_rules import DELIVERED, FILE, MessageState, ReasonCode, has_own_proof
from mam.core.session_row import current_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import HookEvent, Kind
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.session_row import Row

# What a look finds after the agent has left.
_LEFT = (Liveness.DEAD, Liveness.GONE, SHELL)
_STEPS = (0.002, 0.005, 0.01, 0.02)
# The transcript may show a message this much later than the hook that proved it.
_SAME_SECONDS = 600.0
# After the death of the typing process, the keys that it sent may reach the agent this much later.
_ON_THE_WAY_SECONDS = 3.0


class DeliveryProof:
    """What proves a delivery: this text in the transcript beyond `before`, or in a hook since `since`.

    `before` is the size of the record of `conversation`, the one that was open when mam began to type. With
    `is_repeated` the same text was typed a moment ago. Its hook may come late, so only the transcript counts.
    """

    __slots__ = ("before", "conversation", "is_command", "is_repeated", "message", "since", "text")

    def __init__(
        self,
        message: Message,
        text: str,
        *,
        conversation: str,
        before: int,
        since: float,
        is_repeated: bool = False,
    ) -> None:
        self.message = message
        self.text = text
        self.conversation = conversation
        self.before = before
        self.since = since - COARSE_SECONDS
        self.is_command = message.is_command
        self.is_repeated = is_repeated and message.carrier != FILE

    def start_in(self, conversation: str, kind: Kind) -> int:
        """Return where the transcript of a conversation can begin to show the text."""
        is_known = conversation == self.conversation or kind.has_global_transcript_size
        return self.before if is_known else 0

    @property
    def was_queued(self) -> bool:
        """Whether it is proven already that the agent put the text into its queue."""
        return (
            self.message.state == MessageState.QUEUED or self.message.reason_code == ReasonCode.ENDED_IN_QUEUE
        )

    def count(self, kind: Kind, conversation: str, stores: Mapping[str, str], since: int) -> int | None:
        """Return how often a transcript shows the text: its turn, if it was in the queue before."""
        count = kind.count_taken if self.was_queued else kind.count_submitted
        return count(self.text, conversation, stores, since)


def proof_seconds(text: str) -> float:
    """Return how long the agent's own record may take to show a text: Gemini needed 13 s for 200 KB."""
    return 10.0 + len(text) / 5000


def wait_for(context: Context, row: Row, proof: DeliveryProof, seconds: float | None = None) -> str | None:
    """Wait until something proves that the agent took the text; return the evidence, None if nothing does."""
    deadline = Deadline(proof_seconds(proof.text) if seconds is None else seconds)
    steps = iter(_STEPS)
    while not (evidence := find(context, row, proof)):
        if not deadline.pause(next(steps, _STEPS[-1])):
            return None
    return evidence


def find(context: Context, row: Row, proof: DeliveryProof) -> str | None:
    """Return what proves now that the agent took the text, or None.

    A command leaves no trace but an empty input box or a dialog, and the exit command the end of the agent.
    """
    if proof.is_command:
        look = look_at_pane(context, row)
        if look.absence in _LEFT and proof.text.strip() == context.kind(row["agent"]).exit_word:
            return "exit"
        return "screen" if look.screen_state.dialog or look.screen_state.box == "empty" else None
    events = list(pending_events(context, row, proof.since))
    if not proof.is_repeated and any((event.prompt or "").strip() == proof.text.strip() for event in events):
        return "hook"
    kind, stores = context.kind(row["agent"]), conversations.stores_of(context, row)
    # The first text after a /clear begins a new conversation, which mam did not know when it began to type.
    for conversation in {proof.conversation, _open_now(context, row, events)}:
        since = proof.start_in(conversation, kind)
        if kind.has_submitted(proof.text, conversation, stores, since) and is_in_transcript(
            context, row, proof, conversation
        ):
            return "transcript"
    return None


def is_in_transcript(
    context: Context,
    row: Row,
    proof: DeliveryProof,
    conversation: str,
    others: list[Message] | None = None,
) -> bool:
    """Tell whether a transcript shows this message, beside the others with its text that are proven already.

    Without `others` they are looked up.
    """
    kind, stores = context.kind(row["agent"]), conversations.stores_of(context, row)
    if others is None:
        nobody: list[Message] = []
        others = context.registry.peek(lambda transaction: with_same_text(transaction, proof), nobody)
    # What another message has in the queue is no turn yet.
    proven = (MessageState.SUBMITTED,) if proof.was_queued else DELIVERED
    starts = [
        other.before or 0
        for other in others
        if other.state in proven
        and other.typed is not None
        and other.typed.conversation in ("", conversation)
    ]
    return has_own_proof(
        proof.start_in(conversation, kind),
        starts,
        lambda start: proof.count(kind, conversation, stores, start),
    )


def is_unsubmitted(context: Context, row: Row, proof: DeliveryProof) -> bool:
    """Tell whether the agent's own record shows that the agent did not take the text."""
    kind, stores = context.kind(row["agent"]), conversations.stores_of(context, row)
    return all(
        kind.has_submitted(proof.text, conversation, stores, proof.start_in(conversation, kind)) is False
        for conversation in {proof.conversation, _open_now(context, row, [])}
    )


def with_same_text(transaction: Transaction, proof: DeliveryProof) -> list[Message]:
    """Return the messages with the text of this one that its transcript may show in its place."""
    return messages.with_same_text(transaction, proof.message, proof.since - _SAME_SECONDS)


def was_working(context: Context, row: Row, proof: DeliveryProof) -> bool:
    """Tell whether the agent's hooks say that it was working when it took the text."""
    # Read the spool first: a payload that is taken in meanwhile is in the table when the table is read.
    before = []
    for event in pending_events(context, row):
        if (event.prompt or "").strip() == proof.text.strip():
            break
        before.append(event.state)
    else:
        return False
    _, last = recorded(context.registry, "hook").get(row["id"], (0.0, {"state": None}))
    states = [state for state in (last["state"], *before) if state]
    return states[-1:] == [WORKING]


def _open_now(context: Context, row: Row, events: list[HookEvent]) -> str:
    """Return the conversation that the agent has open now, by these events or by what is recorded."""
    newest = next((event.conversation for event in reversed(events) if event.conversation), None)
    if newest:
        return newest
    reported = conversations.reported_conversation(context, row, recorded_reports(context))
    return reported[0] if reported else current_conversation(row) or ""


def find_late(context: Context, row: Row, proof: DeliveryProof) -> str | None:
    """Return what proves that the agent took a text whose typing process died.

    The last keys may reach the agent a moment after the death, so this waits for them.
    """
    if proof.is_command:
        return None
    seconds = proof.since + _ON_THE_WAY_SECONDS - context.now()
    return wait_for(context, row, proof, max(0.0, min(seconds, _ON_THE_WAY_SECONDS)))
