"""A session whose process is found gone: what the row then says."""

from __future__ import annotations

import time

from mam.adapters.system import load_adjusted_clock
from mam.app.context import claims
from mam.app.context.liveness import see_one
from mam.app.observation import conversations
from mam.app.sessions import launch
from mam.core import transitions
from mam.core.errors import MamError, PaneGone
from mam.core.liveness import Liveness
from mam.core.session_event import Died
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import Context
    from mam.app.context.liveness import Sight
    from mam.core.caller import Caller
    from mam.core.session_row import Row

_PATIENCE = 1.0


def record_if_dead(context: Context, caller: Caller, row: Row, error: MamError | None = None) -> Row:
    """Look at the session; if its process is gone, commit that and return the new row."""
    sight = see_one(context, row)
    if sight.state not in (Liveness.DEAD, Liveness.GONE):
        return row
    done = record_death(context, caller, row, sight)
    if error is not None:
        error.session = done
    return done


def record_death(context: Context, caller: Caller, row: Row, sight: Sight) -> Row:
    """Commit that a session's process is gone."""
    status = exit_status(context, row, sight)
    said = conversations.told(context, row)

    def work(draft: Transaction) -> Row:
        current = draft.get(row["id"]) or row
        if not is_running(current) or not claims.is_free(draft, row["id"], row["name"]):
            # It ended already, or somebody is ending it just now: theirs to record.
            return current
        launch.discard(context, row["id"])
        seen = conversations.captured(context, current, said, draft.rows)
        on_disk = bool(conversations.on_disk(context, seen, current_conversation(seen)))
        done = draft.put(
            transitions.died(
                seen,
                {**caller.action("died", context.now()), "by": "mam"},
                on_disk=on_disk,
                exit_status=status,
            )
        )
        context.publish(draft, Died(done, status))
        draft.log(caller.name, "died", done, sight.reason, exit_status=status)
        return done

    done = claims.change(context, work)
    if not is_running(done):
        launch.leave_to_stranger(context, row, sight.pane)
    return done


def exit_status(context: Context, row: Row, sight: Sight) -> int | None:
    """Return the exit status that tmux kept of a dead pane; a signal counts as 128 and up."""
    pane = sight.pane
    if pane is None or sight.state != Liveness.DEAD:
        return None
    if pane.dead_status is None and pane.dead_signal is None:
        try:
            deadline = time.monotonic() + load_adjusted_clock.stretched(_PATIENCE)
            pane = context.tmux(row["tmux_server"]).dead_status(pane.id, pane.server_pid, deadline)
        except PaneGone:
            return None
    return pane.dead_status if pane.dead_status is not None else _from_signal(pane.dead_signal)


def _from_signal(number: int | None) -> int | None:
    return None if number is None else 128 + number
