"""Rename a session and its tmux session, together."""

from __future__ import annotations

from mam.app.context import claims
from mam.app.context.liveness import see_one
from mam.core import names
from mam.core.errors import MamError, NameTaken, TerminalsDown
from mam.core.liveness import Liveness
from mam.core.session_event import Renamed
from mam.core.session_row import merged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.context.liveness import Sight
    from mam.core.caller import Caller
    from mam.core.session_row import Row


def rename(context: Context, caller: Caller, target: str, name: str) -> Row:
    """Give a session another name; its id stays."""
    wanted = names.parse_name(name)
    result: dict[str, Row] = {}

    def prepare(draft: Transaction, row: Row) -> dict[str, Any] | None:
        if row["name"] == wanted:
            result["row"] = row
            return None
        if draft.named(wanted) or not claims.is_free(draft, "", wanted):
            raise NameTaken(f"a session named '{wanted}' is registered already")
        return {"from": row["name"], "to": wanted}

    with claims.in_flight(context, "rename", target, prepare) as row:
        if row is None:
            return result["row"]
        sight = see_one(context, row)
        _check(context, row, sight, wanted)
        done = claims.change(context, lambda draft: _commit(context, caller, draft, row, wanted))
        try:
            pane = sight.pane
            # A pane that a person moved into another tmux session leaves that one's name alone.
            if pane is not None and pane.mark in ("", row["id"]) and pane.session_name == row["name"]:
                # A pane of the original system is known by its name only: it gets our mark with the new one.
                context.tmux(row["tmux_server"]).mark(pane.id, row["id"], context.paths.root)
                context.tmux(row["tmux_server"]).rename_session(pane.session_id, wanted)
        except MamError:
            claims.change(context, lambda draft: _commit(context, caller, draft, done, row["name"]))
            raise
        return done


def _check(context: Context, row: Row, sight: Sight, wanted: str) -> None:
    if sight.state == Liveness.UNKNOWN:
        raise TerminalsDown(f"'{row['name']}' was not renamed: {sight.reason}")
    listing = context.tmux(row["tmux_server"]).panes()
    if any(pane.session_name == wanted for pane in listing.panes):
        raise NameTaken(f"tmux server '{row['tmux_server']}' has a session named '{wanted}' already")


def _commit(context: Context, caller: Caller, draft: Transaction, row: Row, name: str) -> Row:
    current = draft.get(row["id"]) or row
    action = caller.action("rename", context.now())
    done = draft.put(merged(current, name=name, last_action=action))
    draft.log(action["by"], "rename", done, before=current["name"])
    context.publish(draft, Renamed(done, current["name"]))
    return done
