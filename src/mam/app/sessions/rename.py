"""Rename a session and its tmux session."""

from __future__ import annotations

from mam.app.context import claims
from mam.app.context.liveness import check_liveness
from mam.core import names
from mam.core.errors import MamError, NameTaken, TerminalsDown
from mam.core.liveness_values import Liveness
from mam.core.session_event import Renamed
from mam.core.session_row import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context
    from mam.app.context.liveness import SessionLiveness
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def rename(context: Context, caller: Caller, target: str, name: str) -> Row:
    """Give a session another name. Its id stays the same."""
    new_name = names.parse_name(name)
    result: dict[str, Row] = {}

    def prepare(transaction: Transaction, row: Row) -> dict[str, Any] | None:
        if row["name"] == new_name:
            result["row"] = row
            return None
        if transaction.named(new_name) or not claims.is_free(transaction, "", new_name):
            raise NameTaken(
                f"a session named '{new_name}' is registered already",
                hint="choose another name; mam ls shows the names in use",
            )
        return {"from": row["name"], claims.NEW_NAME: new_name}

    with claims.claim_session(context, "rename", target, prepare) as row:
        if row is None:
            return result["row"]
        liveness = check_liveness(context, row)
        _check(context, row, liveness, new_name)
        renamed_row = claims.change(
            context, lambda transaction: _commit(context, caller, transaction, row, new_name)
        )
        try:
            pane = liveness.pane
            # If a person moved the pane into another tmux session, that tmux session keeps its name.
            if pane is not None and pane.mark in ("", row["id"]) and pane.session_name == row["name"]:
                # mam finds a pane of the original system by name only. Mark it before the name changes.
                context.tmux(row["tmux_server"]).mark(pane.id, row["id"], context.root_mark)
                context.tmux(row["tmux_server"]).rename_session(pane.session_id, new_name)
        except MamError:
            claims.change(
                context, lambda transaction: _commit(context, caller, transaction, renamed_row, row["name"])
            )
            raise
        return renamed_row


def _check(context: Context, row: Row, liveness: SessionLiveness, new_name: str) -> None:
    if liveness.state == Liveness.UNKNOWN:
        raise TerminalsDown(f"'{row['name']}' was not renamed: {liveness.reason}")
    listing = context.tmux(row["tmux_server"]).panes()
    own_id = liveness.pane.id if liveness.pane is not None else None
    # The tmux session may have the name already: a person has renamed it, or the row was restored.
    if any(pane.session_name == new_name and pane.id != own_id for pane in listing.panes):
        raise NameTaken(f"tmux server '{row['tmux_server']}' has a session named '{new_name}' already")


def _commit(context: Context, caller: Caller, transaction: Transaction, row: Row, name: str) -> Row:
    current = transaction.get(row["id"]) or row
    action = caller.action("rename", context.now())
    new_row = transaction.put(merged(current, name=name, last_action=action))
    transaction.log(action["by"], "rename", new_row, before=current["name"])
    context.tell_listeners(transaction, Renamed(new_row, current["name"]))
    return new_row
