"""Conversations of a session: which one it has, which one a resume takes up, which process has it open."""

from __future__ import annotations

from mam.adapters.store.user_state import Lease
from mam.adapters.system import process
from mam.adapters.system.process import Identity
from mam.app.context.liveness import check_liveness, identity_of
from mam.app.observation.newest_hook_reports import newest_reports
from mam.core.errors import ConversationBusy
from mam.core.liveness_values import Liveness
from mam.core.resume_choice import Choice, choose
from mam.core.session_row import current_conversation, merged, own_id, own_id_field
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.observation.newest_hook_reports import HookReport
    from mam.core.session_row import Row


def stores_of(context: Context, row: Row) -> dict[str, str]:
    """Return where the session's agent keeps its files, by the row or else by the caller's environment."""
    return row.get("stores") or context.kind(row["agent"]).stores(context.environ)


def on_disk(context: Context, row: Row, conversation: str | None) -> bool | None:
    """Tell whether a conversation of this session is on disk; None where mam cannot tell."""
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
    """Return the conversation that a resume would take up.

    `listed` is a cache of the conversations on disk, for several calls.
    """
    kind = context.kind(row["agent"])
    stores = stores_of(context, row)
    cache = {} if listed is None else listed
    key = (row["agent"], row["workspace"], *sorted(stores.items()))

    def in_workspace() -> list[str]:
        if _shares_workspace(row, rows):
            return []
        if key not in cache:
            cache[key] = kind.conversations(row["workspace"], stores)
        return cache[key]

    return choose(
        row,
        identities.get(row["agent"]),
        on_disk=lambda conversation: kind.on_disk(conversation, row["workspace"], stores),
        in_workspace=in_workspace,
        is_taken=lambda conversation: _is_of_other_session(conversation, row, rows),
    )


def resume_refusal(row: Row, choice: Choice) -> str | None:
    """Return why a session cannot be resumed with what was chosen for it; None if it can."""
    if choice.id is None:
        return "no conversation of it is known"
    if not choice.on_disk and own_id(row):
        return f"its conversation {choice.id} is not on disk"
    return None


def way_to_continue(context: Context, row: Row) -> str:
    """Return the command that continues an ended session: a resume, if there is something to resume."""
    kind = context.kind(row["agent"])
    if kind.runs_command_of_job:
        return "submit the job again: mam job submit --exec … -- PROGRAM ARG…"
    view = context.registry.view_to_show()
    if kind.can_resume and resume_refusal(
        row, resume_choice(context, row, view.rows, view.identities, view.listed)
    ):
        return way_to_begin_anew(row)
    return f"mam resume {row['name']}"


def way_to_begin_anew(row: Row, *, runs: bool = False) -> str:
    """Return the command that starts a session with a new conversation; one that runs must end first."""
    way = f"mam create --session {row['name']} starts it with a new conversation"
    return f"its program runs, and still knows what was said; after its end, {way}" if runs else way


def _shares_workspace(row: Row, rows: Sequence[Row]) -> bool:
    """Tell whether another session of the same kind has the same workspace.

    A conversation found in the workspace may then be the other session's.
    """
    return any(
        other.get("id") != row.get("id")
        and (other["agent"], other["workspace"]) == (row["agent"], row["workspace"])
        for other in rows
    )


def _is_of_other_session(conversation: str, row: Row, rows: Sequence[Row]) -> bool:
    return any(
        conversation == own_id(other)
        or any(entry["id"] == conversation for entry in other.get("conversations") or [])
        for other in rows
        if other.get("id") != row.get("id") and other["agent"] == row["agent"]
    )


def reported_conversation(
    context: Context, row: Row, reports: dict[str, HookReport] | None = None
) -> tuple[str, str] | None:
    """Return the id of the conversation that the agent names, and the source: state file or newest hook.

    `reports` are the newest hook reports of each session; without them they are read here.
    """
    kind, pane = context.kind(row["agent"]), row.get("pane") or {}
    if kind.has_state_file:
        state = kind.read_state(pane.get("pid", 0), pane.get("pid_start", 0), stores_of(context, row))
        if state and state[1]:
            return state[1], "state-file"
    report = (newest_reports(context, [row]) if reports is None else reports).get(row.get("id") or "")
    return (report.data["conversation"], "hook") if report and report.data.get("conversation") else None


def open_conversation(context: Context, row: Row) -> str | None:
    """Return the conversation that the agent has open now, which may be newer than the row's."""
    reported = reported_conversation(context, row)
    return reported[0] if reported else current_conversation(row)


def with_conversation(
    context: Context,
    row: Row,
    reported: tuple[str, str] | None = None,
    rows: Callable[[], Sequence[Row]] | None = None,
) -> Row:
    """Return the row with the conversation that it really has: the reported one, if it is on disk.

    `reported` comes from `reported_conversation`. With `rows`, a conversation of another session is not
    taken, even if the agent reports it.
    """
    for conversation, source in (reported or (None, ""), (current_conversation(row), "artifact")):
        if conversation and on_disk(context, row, conversation):
            entries = row.get("conversations") or []
            if all(entry["id"] != conversation for entry in entries):
                if rows is not None and _is_of_other_session(conversation, row, rows()):
                    continue
                entries = [*entries, {"id": conversation, "source": source, "since": stamp(context.now())}]
            return merged(row, **{own_id_field(row["agent"]): conversation, "conversations": entries})
    return row


def record_last_conversation(context: Context, transaction: Transaction, row: Row) -> None:
    """Record the session's own conversation as the newest conversation of its agent kind."""
    own = own_id(row)
    key = "conversation_id" if row["agent"] == "agy" else "session_id"
    identity = transaction.identities().get(row["agent"]) or {}
    if own and (identity.get(key), identity.get("project_cwd")) != (own, row["workspace"]):
        at = stamp(context.now())
        transaction.set_identity(row["agent"], {key: own, "project_cwd": row["workspace"], "updated_at": at})


def forget_identity(transaction: Transaction, row: Row, conversation: str | None) -> None:
    """Forget a deleted conversation where it is recorded as the newest of its agent kind."""
    identity = transaction.identities().get(row["agent"]) or {}
    if conversation and conversation in (identity.get("session_id"), identity.get("conversation_id")):
        transaction.set_identity(row["agent"], None)


def record_conversation(context: Context, row: Row) -> Row:
    """Record the session's conversation once it is on disk; ConversationBusy if another session has it."""
    from mam.app.context.claims import change

    reported = reported_conversation(context, row)
    holder, conversation = identity_of(row), own_id(with_conversation(context, row, reported))
    if holder and conversation and conversation != own_id(row):
        take_lease(context, row, conversation, holder)

    def work(transaction: Transaction) -> Row:
        current = transaction.get(row["id"]) or row
        updated = with_conversation(context, current, reported, transaction.rows)
        if updated == current:
            return current
        record_last_conversation(context, transaction, updated)
        return transaction.put(updated)

    return change(context, work)


def record_open_conversation(context: Context, row: Row) -> Row:
    """Take the lease of the conversation that the agent names, and record it before it is on disk.

    Without the record, a session that died now could resume a conversation of another session. Raises
    ConversationBusy if another session has it.
    """
    from mam.app.context.claims import change

    kind = context.kind(row["agent"])
    reported = (
        reported_conversation(context, row)
        if kind.has_state_file and not kind.takes_conversation_id
        else None
    )
    if reported is None:
        return row
    conversation, source = reported
    holder = identity_of(row)
    if holder is not None:
        take_lease(context, row, conversation, holder)

    def work(transaction: Transaction) -> Row:
        current = transaction.get(row["id"]) or row
        entries = current.get("conversations") or []
        if any(entry["id"] == conversation for entry in entries):
            return current
        if _is_of_other_session(conversation, current, transaction.rows()):
            return current
        new: Any = {"id": conversation, "source": source, "since": stamp(context.now())}
        return transaction.put(merged(current, conversations=[*entries, new]))

    return change(context, work)


def refuse_if_held(context: Context, row: Row, conversation: str, *, runs: bool = False) -> None:
    """Raise ConversationBusy where another session, or a person outside mam, has the conversation open.

    `runs` tells that the session runs: then its own process may have it open.
    """
    _refuse_if_open_outside(context, row, conversation, identity_of(row))
    lease = context.user_state.lease(row["agent"], conversation)
    if lease is None or lease.is_of(_lease(context, row, {})):
        return
    if _lives(lease.holder) and not (runs and _is_in_own_pane(context, row, lease)):
        raise ConversationBusy(
            f"conversation {conversation} is open in process {lease.holder.get('pid')} (root {lease.root})",
            hint="stop that session first",
        )


def refuse_if_shared(row: Row, rows: Sequence[Row]) -> None:
    """Raise ConversationBusy where the conversation of a session is also recorded for another session."""
    current = current_conversation(row)
    if current and _is_of_other_session(current, row, rows):
        raise ConversationBusy(
            f"conversation {current} also belongs to another session", hint="mam ls --json shows which"
        )


def take_lease(context: Context, row: Row, conversation: str | None, holder: Identity) -> None:
    """Take the lease of a conversation for a session; ConversationBusy where another live process has it."""
    if not conversation:
        return
    _refuse_if_open_outside(context, row, conversation, holder)
    own = _lease(context, row, holder.as_json())
    lease = context.user_state.take(row["agent"], conversation, own, _lives)
    if lease is not None and holder == identity_of(row) and _is_in_own_pane(context, row, lease):
        former = lease.holder
        lease = context.user_state.take(
            row["agent"], conversation, own, lambda other: other != former and _lives(other)
        )
    if lease is not None:
        raise ConversationBusy(
            f"conversation {conversation} is open in process {lease.holder.get('pid')} (root {lease.root})",
            hint="stop that session first, or start a new one",
        )


def _lease(context: Context, row: Row, holder: dict[str, Any]) -> Lease:
    return Lease(context.paths.root, row["id"], holder, context.root_id)


def _is_in_own_pane(context: Context, row: Row, lease: Lease) -> bool:
    """Tell whether the holder is the process in the session's own pane.

    The agent took the lease before its root was made anew and it was adopted. The row of a copied or
    restored root names the process of the original as well, so the pane must carry the mark of this root.
    """
    holder = Identity.from_json(lease.holder)
    return (
        holder is not None
        and holder == identity_of(row)
        and check_liveness(context, row).state == Liveness.ALIVE
    )


def _refuse_if_open_outside(context: Context, row: Row, conversation: str, holder: Identity | None) -> None:
    """Raise ConversationBusy where a process that the agent's own files name has the conversation open."""
    for pid, start in context.kind(row["agent"]).holders(conversation, stores_of(context, row)):
        other = Identity(pid, start, process.boot_id())
        if other != holder and process.is_alive(other):
            raise ConversationBusy(
                f"conversation {conversation} is open in process {pid}, which mam did not start for it",
                hint="close the conversation there first, or fork it",
            )


def _lives(holder: dict[str, Any]) -> bool:
    identity = Identity.from_json(holder)
    return identity is not None and process.is_alive(identity)
