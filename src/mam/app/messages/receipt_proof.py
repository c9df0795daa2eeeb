"""What proves that an agent took a message: its hook, its record, and for a command its screen."""

from __future__ import annotations

from mam.adapters.store.tables.evidence import recorded
from mam.adapters.system.deadline import Deadline
from mam.app.messages.enter_text import proof_seconds
from mam.app.observation import conversations
from mam.app.observation.hook_reports import COARSE_SECONDS, pending_events, recorded_reports
from mam.app.observation.pane_look import glance
from mam.core.activity import WORKING
from mam.core.message import FILE
from mam.core.session_row import current_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.agents.kind import HookEvent
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.core.session_row import Row

_STEPS = (0.002, 0.005, 0.01, 0.02)
# After the death of a typist: so long may keys that it sent still be on their way.
_ON_THE_WAY_SECONDS = 3.0


class DeliveryProof:
    """What to look for: these words, beyond what the record held before, and in hooks of later than that.

    `before` is of the conversation that was open then. The same words may have been typed a moment ago, and
    that hook may come late: then only the record counts.
    """

    __slots__ = ("before", "conversation", "is_command", "is_repeated", "since", "words")

    def __init__(
        self,
        message: Message,
        words: str,
        *,
        conversation: str,
        before: int,
        since: float,
        is_repeated: bool = False,
    ) -> None:
        self.words = words
        self.conversation = conversation
        self.before = before
        self.since = since - COARSE_SECONDS
        self.is_command = message.is_command
        self.is_repeated = is_repeated and message.carrier != FILE


def wait_for(context: Context, row: Row, trial: DeliveryProof, seconds: float | None = None) -> str | None:
    """Return what proves that the agent took the words, as soon as something does; None if nothing did."""
    deadline = Deadline(proof_seconds(trial.words) if seconds is None else seconds)
    steps = iter(_STEPS)
    while not (found := find(context, row, trial)):
        if not deadline.pause(next(steps, _STEPS[-1])):
            return None
    return found


def find(context: Context, row: Row, trial: DeliveryProof) -> str | None:
    """Return what proves now that the agent took the words; a command leaves nothing but an empty box."""
    if trial.is_command:
        seen = glance(context, row)
        return "screen" if seen.look.dialog or seen.look.box == "empty" else None
    heard = list(pending_events(context, row, trial.since))
    if not trial.is_repeated and any((one.prompt or "").strip() == trial.words.strip() for one in heard):
        return "hook"
    kind, stores = context.kind(row["agent"]), conversations.stores_of(context, row)
    # The first words after a /clear begin a conversation that nobody knew of.
    for conversation in {trial.conversation, _open_now(context, row, heard)}:
        is_known = conversation == trial.conversation or kind.counts_for_all
        if kind.has_submitted(trial.words, conversation, stores, trial.before if is_known else 0):
            return "transcript"
    return None


def was_working(context: Context, row: Row, trial: DeliveryProof) -> bool:
    """Tell whether the agent's hooks say that it worked when it took the words."""
    # The spool comes first: what is taken out of it meanwhile is in the record.
    before = []
    for one in pending_events(context, row):
        if (one.prompt or "").strip() == trial.words.strip():
            break
        before.append(one.state)
    else:
        return False
    _, last = recorded(context.registry, "hook").get(row["id"], (0.0, {"state": None}))
    states = [state for state in (last["state"], *before) if state]
    return states[-1:] == [WORKING]


def _open_now(context: Context, row: Row, heard: list[HookEvent]) -> str:
    """Return the conversation that the agent has now; its hooks are left to whoever else waits for them."""
    named = next((one.conversation for one in reversed(heard) if one.conversation), None)
    if named:
        return named
    said = conversations.told(context, row, recorded_reports(context))
    return said[0] if said else current_conversation(row) or ""


def find_late(context: Context, row: Row, trial: DeliveryProof) -> str | None:
    """Return what proves that words of a typist who died were taken; keys may still be on their way."""
    if trial.is_command:
        return None
    left = trial.since + _ON_THE_WAY_SECONDS - context.now()
    return wait_for(context, row, trial, max(0.0, min(left, _ON_THE_WAY_SECONDS)))
