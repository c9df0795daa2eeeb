"""Remove the row of an ended session, and the messages to it. Its conversation stays with its agent."""

from __future__ import annotations

from functools import partial

from mam.adapters.store.files import message_files
from mam.adapters.store.tables import messages
from mam.app.context import claims
from mam.app.messages.launch_end import end_messages
from mam.app.sessions import launch
from mam.core import session_transitions
from mam.core.errors import Refused
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def forget(context: Context, caller: Caller, target: str, *, worktree: bool = False) -> dict[str, Any]:
    """Remove the row of an ended session and the messages to it, with their files.

    With `worktree` also its worktree, if no work would be lost. What the session sent to others stays.
    """

    def prepare(transaction: Transaction, row: Row) -> dict[str, Any] | None:
        session_transitions.next_status(row["status"], "forget", row["name"])
        if worktree and not row.get("worktree"):
            raise Refused(f"'{row['name']}' has no worktree", hint="repeat without --worktree")
        return {}

    with claims.claim_session(context, "forget", target, prepare) as row:
        assert row is not None
        removed = _remove_worktree(context, row) if worktree else None
        remove_dead_pane(context, row)
        none: list[str] = []
        message_ids = context.registry.peek(partial(messages.ids_of, session_id=row["id"]), none)
        # Before the rows, which tell what is still to be removed.
        message_files.remove(row["workspace"], message_ids)

        def work(transaction: Transaction) -> None:
            # The log tells their senders.
            end_messages(transaction, row, "the session was forgotten", by=caller.name, also_parked=True)
            transaction.remove(row["id"])
            transaction.intents.end(row["id"])
            transaction.log(caller.name, "forget", row, worktree=removed)

        claims.change(context, work)
        launch.forget_settings(context, row["id"])
    return {"forgotten": row["name"], "id": row["id"], "worktree": removed}


def forgettable(
    context: Context, *, older_than: float | None = None, status: Sequence[str] = ()
) -> list[str]:
    """Return the names of ended sessions; with `older_than` only those that ended more seconds ago."""
    now = context.now()
    names = []
    for row in context.registry.view().rows:
        ended_at = max(row.get("stopped_at_epoch") or 0, row.get("terminated_at_epoch") or 0)
        if is_running(row) or (status and row["status"] not in status):
            continue
        if older_than is None or now - ended_at > older_than:
            names.append(row["name"])
    return names


def _remove_worktree(context: Context, row: Row) -> dict[str, Any]:
    from mam.app.sessions.worktree import remove_worktree

    return remove_worktree(context, row)


def find_dead_pane(context: Context, row: Row) -> Pane | None:
    """Return the dead pane that mam kept for review; None if there is none of this session."""
    from mam.app.context.liveness import check_liveness
    from mam.core.liveness_values import Liveness

    liveness = check_liveness(context, row)
    pane = liveness.pane
    return pane if liveness.state == Liveness.DEAD and pane is not None and pane.mark == row["id"] else None


def remove_dead_pane(context: Context, row: Row) -> bool:
    """Remove the dead pane that mam kept for review; False if there is none, or if it lives again."""
    pane = find_dead_pane(context, row)
    if pane is None:
        return False
    return context.tmux(row["tmux_server"]).kill_pane(pane.id, mark=row["id"], pid=pane.pid)
