"""Conversations of a session: which one it has, which one a resume takes, who holds it."""

from __future__ import annotations

from mam.adapters.store.user_state import Lease
from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.app.context.claims import change
from mam.app.context.liveness import identity_of
from mam.app.observation.hook_reports import newest_reports
from mam.core.errors import ConversationBusy
from mam.core.resume_choice import Choice, choose
from mam.core.session_row import current_conversation, merged, own_id, own_id_field
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.observation.hook_reports import HookReport
    from mam.core.session_row import Row


def stores_of(context: Context, row: Row) -> dict[str, str]:
    """Return where the session's agent keeps its files; a row that does not say so goes by the caller's."""
    return row.get("stores") or context.kind(row["agent"]).stores(context.environ)


def on_disk(context: Context, row: Row, conversation: str | None) -> bool | None:
    """Tell whether a conversation of this session is on disk."""
    if not conversation:
        return None
    return context.kind(row["agent"]).on_disk(conversation, row["workspace"], stores_of(context, row))


def resume_choice(
    context: Context,
    row: Row,
    rows: Sequence[Row],
    identities: dict[str, Any],
    listed: dict[Any, list[str]] | None = None,
) -> Choice:
    """Return the conversation that a resume would take up; `listed` keeps what a store was found to hold."""
    kind = context.kind(row["agent"])
    stores = stores_of(context, row)
    known = {} if listed is None else listed
    key = (row["agent"], row["workspace"], *sorted(stores.items()))

    def in_workspace() -> list[str]:
        if _has_twin(row, rows):
            return []
        if key not in known:
            known[key] = kind.conversations(row["workspace"], stores)
        return known[key]

    return choose(
        row,
        identities.get(row["agent"]),
        on_disk=lambda one: kind.on_disk(one, row["workspace"], stores),
        in_workspace=in_workspace,
        is_taken=lambda one: _is_anothers(one, row, rows),
    )


def _has_twin(row: Row, rows: Sequence[Row]) -> bool:
    """Tell whether another session has worked there too: what is found may be that one's."""
    return any(
        other.get("id") != row.get("id")
        and (other["agent"], other["workspace"]) == (row["agent"], row["workspace"])
        for other in rows
    )


def _is_anothers(conversation: str, row: Row, rows: Sequence[Row]) -> bool:
    return any(
        conversation == own_id(other)
        or any(one["id"] == conversation for one in other.get("conversations") or [])
        for other in rows
        if other.get("id") != row.get("id") and other["agent"] == row["agent"]
    )


def told(context: Context, row: Row, reports: dict[str, HookReport] | None = None) -> tuple[str, str] | None:
    """Return the conversation that the agent itself names, and the source: state file, or last hook.

    `reports` are the newest ones of each session, where somebody has them already.
    """
    kind, pane = context.kind(row["agent"]), row.get("pane") or {}
    if kind.has_state_file:
        said = kind.read_state(pane.get("pid", 0), pane.get("pid_start", 0), stores_of(context, row))
        if said and said[1]:
            return said[1], "state-file"
    report = (newest_reports(context, [row]) if reports is None else reports).get(row.get("id") or "")
    return (report.data["conversation"], "hook") if report and report.data.get("conversation") else None


def captured(
    context: Context,
    row: Row,
    said: tuple[str, str] | None = None,
    rows: Callable[[], Sequence[Row]] | None = None,
) -> Row:
    """Return the row with the conversation that it really has: as the agent said, if it is on disk.

    With `rows` one that another session has is not taken, whoever says so.
    """
    for conversation, source in (said or (None, ""), (current_conversation(row), "artifact")):
        if conversation and on_disk(context, row, conversation):
            known = row.get("conversations") or []
            if all(one["id"] != conversation for one in known):
                if rows is not None and _is_anothers(conversation, row, rows()):
                    continue
                known = [*known, {"id": conversation, "source": source, "since": stamp(context.now())}]
            return merged(row, **{own_id_field(row["agent"]): conversation, "conversations": known})
    return row


def remember(context: Context, draft: Transaction, row: Row) -> None:
    """Keep the session's own conversation as the last known one of its kind."""
    own = own_id(row)
    key = "conversation_id" if row["agent"] == "agy" else "session_id"
    known = draft.identities().get(row["agent"]) or {}
    if own and (known.get(key), known.get("project_cwd")) != (own, row["workspace"]):
        at = stamp(context.now())
        draft.set_identity(row["agent"], {key: own, "project_cwd": row["workspace"], "updated_at": at})


def disown(draft: Transaction, row: Row, conversation: str | None) -> None:
    """Forget a conversation that was deleted."""
    known = draft.identities().get(row["agent"]) or {}
    if conversation and conversation in (known.get("session_id"), known.get("conversation_id")):
        draft.set_identity(row["agent"], None)


def capture(context: Context, row: Row) -> Row:
    """Record the session's conversation once it is on disk; ConversationBusy if it is another's."""
    said = told(context, row)
    holder, wanted = identity_of(row), own_id(captured(context, row, said))
    if holder and wanted and wanted != own_id(row):
        take_lease(context, row, wanted, holder)

    def work(draft: Transaction) -> Row:
        current = draft.get(row["id"]) or row
        seen = captured(context, current, said, draft.rows)
        if seen == current:
            return current
        remember(context, draft, seen)
        return draft.put(seen)

    return change(context, work)


def note_open(context: Context, row: Row) -> Row:
    """Record the conversation that the agent names, though nothing of it is on disk yet.

    Without it a session that died before anybody looked would take up a neighbour's.
    """
    kind = context.kind(row["agent"])
    said = told(context, row) if kind.has_state_file and not kind.chooses_id else None
    if said is None:
        return row
    holder = identity_of(row)
    if holder is not None:
        take_lease(context, row, said[0], holder)

    def work(draft: Transaction) -> Row:
        current = draft.get(row["id"]) or row
        known = current.get("conversations") or []
        if any(one["id"] == said[0] for one in known) or _is_anothers(said[0], current, draft.rows()):
            return current
        entry: Any = {"id": said[0], "source": said[1], "since": stamp(context.now())}
        return draft.put(merged(current, conversations=[*known, entry]))

    return change(context, work)


def refuse_if_held(context: Context, row: Row, conversation: str) -> None:
    """Refuse to touch a conversation that a live process has open: of another session, or a person's own."""
    _refuse_outsiders(context, row, conversation, identity_of(row))
    other = context.user_state.lease(row["agent"], conversation)
    if other is None or (other.session_id, other.root) == (row["id"], context.paths.root):
        return
    if _lives(other.holder):
        raise _held(conversation, other)


def refuse_if_shared(row: Row, rows: Sequence[Row]) -> None:
    """Refuse to delete a conversation that another session names as its own."""
    current = current_conversation(row)
    if current and _is_anothers(current, row, rows):
        raise ConversationBusy(
            f"conversation {current} is also that of another session", hint="mam ls --json shows which"
        )


def _held(conversation: str, other: Lease) -> ConversationBusy:
    return ConversationBusy(
        f"conversation {conversation} is open in process {other.holder.get('pid')} (root {other.root})",
        hint="stop that session first",
    )


def take_lease(context: Context, row: Row, conversation: str | None, holder: Identity) -> None:
    """Hold a conversation for a session; refuse one that a live process of another session has."""
    if not conversation:
        return
    _refuse_outsiders(context, row, conversation, holder)
    other = context.user_state.take(
        row["agent"], conversation, Lease(context.paths.root, row["id"], holder.as_json()), _lives
    )
    if other is not None:
        raise ConversationBusy(
            f"conversation {conversation} is open in process {other.holder.get('pid')} (root {other.root})",
            hint="stop that session first, or start a new one",
        )


def _refuse_outsiders(context: Context, row: Row, conversation: str, holder: Identity | None) -> None:
    for pid, start in context.kind(row["agent"]).holders(conversation, stores_of(context, row)):
        outsider = Identity(pid, start, process.boot_id())
        if outsider != holder and process.is_alive(outsider):
            raise ConversationBusy(
                f"conversation {conversation} is open in process {pid}, which mam did not start for it",
                hint="leave it there first, or fork it",
            )


def _lives(holder: dict[str, Any]) -> bool:
    identity = Identity.from_json(holder)
    return identity is not None and process.is_alive(identity)
