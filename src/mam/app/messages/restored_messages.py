"""Puts the messages of a restored database to rest: the agents may have got them since the copy was made.

mam looks into the state that is replaced, if that can be read, at the pane, and into the agent's own record,
and types nothing. Only a message that the agent surely does not have stays held.
"""

from __future__ import annotations

from mam.adapters.store.tables import messages
from mam.app.messages import unrecorded_text
from mam.app.messages.message_as_text_or_file import carried_text
from mam.app.observation.conversations import stores_of
from mam.core.activity import IDLE
from mam.core.errors import MamError
from mam.core.message_rules import DELIVERED, FILE, RESTORED, WHEN_IDLE, MessageState, state_after_restore
from mam.core.session_row import current_conversation
from mam.core.times import parse_stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from mam.adapters.agents.kind import Kind, Turn
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.store.tables.messages import Message
    from mam.app.context.context import Context
    from mam.app.messages.unrecorded_text import Place, SeenPane
    from mam.core.session_row import Row

# A long text may be cut in a transcript, so only its beginning is compared.
_COMPARED = 400
_MOST_TURNS, _MOST_CONVERSATIONS = 2000, 5
# Agents record times to the second, or with a clock that was set.
_SLACK_SECONDS = 2.0


def settle(
    context: Context,
    transaction: Transaction,
    root_id: str,
    panes: Mapping[str, Place],
    *,
    made_at: float,
    is_replaced: bool,
) -> dict[MessageState, list[str]]:
    """Give each open message the state that can be proven; return the ids by state.

    `panes` are the live panes by session, and `made_at` is the time of the copy. With `is_replaced` the
    registry still has the state that this one replaces.
    """
    settled: dict[MessageState, list[str]] = {}
    open_messages = messages.open_of(transaction)
    session_ids = dict.fromkeys(message.session_id for message in open_messages)
    rows = {key: row for key in session_ids if (row := transaction.get(key)) is not None}
    # The panes first: what an agent takes from its queue after the look is in its record.
    seen = unrecorded_text.look_at_panes(context, rows.values(), panes)
    records: dict[str, _Record] = {}
    for message in open_messages:
        row = rows.get(message.session_id)
        if message.session_id not in records and row is not None:
            records[message.session_id] = _Record(
                context, row, root_id, made_at, is_in_pane=row["id"] in panes, seen=seen.get(row["id"])
            )
        former = _former(context, message.id) if is_replaced else None
        state = _state_since(message, former)
        if state is None and _is_surely_untyped(message, former, seen.get(message.session_id), made_at):
            state = MessageState.HELD
        if state is None:
            state = _state_of(transaction, message, records.get(message.session_id))
        settled.setdefault(state, []).append(message.id)
        if state == MessageState.HELD:
            continue
        is_proven = state in DELIVERED
        evidence = former.evidence if former is not None and former.state == state else "transcript"
        messages.update(
            transaction,
            message.id,
            state=state,
            reason=None if is_proven else RESTORED,
            evidence=evidence if is_proven else None,
            owner=None,
            **_delivery_of(former, state),
        )
    return settled


def _delivery_of(former: Message | None, state: MessageState) -> dict[str, Any]:
    """Return what was typed for a message that an agent has in its queue: its turn is still to come."""
    if former is None or former.typed is None or state != MessageState.QUEUED:
        return {}
    names = ("attempts", "typed", "before", "carrier", "added")
    return {name: getattr(former, name) for name in names}


def _former(context: Context, message_id: str) -> Message | None:
    try:
        return context.registry.peek(lambda transaction: messages.find(transaction, message_id), None)
    except MamError:
        # The state that is replaced is damaged, or of a newer mam.
        return None


def _state_since(message: Message, former: Message | None) -> MessageState | None:
    """Return the state that follows from the replaced state; None if nobody has typed the message since.

    The agent's own record may not show it yet: the agent has queued it, or it stands in the input box.
    """
    if former is None or former.state == MessageState.HELD or former.attempts <= message.attempts:
        return None
    return former.state if former.state in DELIVERED else MessageState.UNCONFIRMED


def _is_surely_untyped(
    message: Message, former: Message | None, seen: SeenPane | None, made_at: float
) -> bool:
    """Tell whether nobody can have typed a held message since the copy, whatever the record shows.

    Either the replaced state still holds it, or nothing was drawn in its pane since then.
    """
    if message.state != MessageState.HELD:
        return False
    if former is not None and (former.state, former.attempts) == (MessageState.HELD, message.attempts):
        return True
    return seen is not None and seen.is_unchanged_since(made_at)


def _state_of(transaction: Transaction, message: Message, record: _Record | None) -> MessageState:
    if message.state == MessageState.TYPING or (record is not None and message.is_command):
        # A command leaves no trace in a transcript.
        return MessageState.UNCONFIRMED
    if record is None:
        # Its session is not known any more, so the next delivery ends it without typing.
        return MessageState.HELD
    carried = carried_text(record.kind, message, transaction.get(message.sender))
    if (carried.carrier == FILE or message.sender != "user") and record.has_turn_with(message.id):
        # Nobody else writes the id of a message, also if its sender has another name now.
        return MessageState.SUBMITTED
    if carried.text is None:
        return MessageState.HELD
    taken = record.taken(carried.text, message.created_at - _SLACK_SECONDS)
    if taken is not None:
        taken -= messages.count_taken(transaction, message.session_id, message.text, message.created_at)
    return state_after_restore(
        record.shown(carried.text),
        taken,
        may_be_unrecorded=record.may_lack(carried.text, only_idle=message.wanted == WHEN_IDLE),
    )


class _Record:
    """What the agent of one session has recorded of its conversations, and what its pane shows."""

    def __init__(
        self,
        context: Context,
        row: Row,
        root_id: str,
        made_at: float,
        *,
        is_in_pane: bool,
        seen: SeenPane | None,
    ) -> None:
        self.context = context
        self.made_at = made_at
        self.kind: Kind = context.kind(row["agent"])
        self.row = row
        self.is_in_pane = is_in_pane
        self.seen = seen
        self.stores = stores_of(context, row)
        leased = context.user_state.leased(row["id"], root_id)
        self.conversations = self._candidates(leased)
        self._turns: dict[str, list[Turn] | None] = {}

    def _candidates(self, leased: Iterable[str]) -> list[str]:
        """Return the conversations that may have the text: the newest that the row names, and newer ones."""
        row, pane = self.row, self.row.get("pane") or {}
        found = [entry["id"] for entry in (row.get("conversations") or [])[-_MOST_CONVERSATIONS:]]
        found += [current_conversation(row) or "", *leased]
        if self.kind.has_state_file:
            state = self.kind.read_state(pane.get("pid", 0), pane.get("pid_start", 0), self.stores)
            found.append((state and state[1]) or "")
        return [conversation for conversation in dict.fromkeys(found) if conversation]

    def turns(self, conversation: str) -> list[Turn] | None:
        """Return the last turns of a conversation; None if they cannot be read."""
        if conversation not in self._turns:
            transcript = self.kind.read_transcript(
                conversation, self.row["workspace"], self.stores, _MOST_TURNS
            )
            self._turns[conversation] = transcript.turns if transcript is not None else None
        return self._turns[conversation]

    def has_turn_with(self, word: str) -> bool:
        """Tell whether the agent got a text with this word."""
        return any(
            turn.role == "user" and word in turn.text
            for conversation in self.conversations
            for turn in self.turns(conversation) or ()
        )

    def shown(self, text: str) -> int | None:
        """Return how often the conversations have a text; None where mam cannot tell."""
        counts = [
            self.kind.count_submitted(text, conversation, self.stores, 0)
            for conversation in self.conversations
        ]
        known = [count for count in counts if count is not None]
        return sum(known) if known and len(known) == len(counts) else None

    def may_lack(self, text: str, *, only_idle: bool) -> bool:
        """Tell whether the agent may have a text that the counts of the record do not have."""
        if unrecorded_text.may_be_unrecorded(
            self.context,
            self.row,
            text,
            is_in_pane=self.is_in_pane,
            seen=self.seen,
            made_at=self.made_at,
            only_idle=only_idle,
        ):
            return True
        is_idle = self.seen is None or self.seen.screen.state == IDLE
        return self.kind.records_queue and not is_idle and self._may_have_queued(text)

    def _may_have_queued(self, text: str) -> bool:
        return any(
            self.kind.has_submitted(text, conversation, self.stores, 0) is not False
            for conversation in self.conversations
        )

    def taken(self, text: str, since: float) -> int | None:
        """Return how often the agent got a text since then; None where mam cannot tell."""
        count = 0
        for conversation in self.conversations:
            shown = self.kind.count_submitted(text, conversation, self.stores, 0)
            if not shown:
                continue
            turns = self.turns(conversation)
            times = _times_of(turns or [], text)
            first = parse_stamp(turns[0].at) if turns else None
            if first is None or None in times or (first > since and len(times) < shown):
                return None
            count += sum(1 for at in times if at is not None and at >= since)
        return count


def _times_of(turns: list[Turn], text: str) -> list[float | None]:
    """Return when an agent got a text, for each turn that has it; None for a turn without a time."""
    wanted = _compared(text)
    return [parse_stamp(turn.at) for turn in turns if turn.role == "user" and _compared(turn.text) == wanted]


def _compared(text: str) -> str:
    return " ".join(text.split())[:_COMPARED]
