"""A session whose process is found gone: what the row then says."""

from __future__ import annotations

import time

from mam.adapters.system import load_adjusted_clock
from mam.app.context import caller, claims
from mam.app.context.liveness import DEAD, GONE, see_one
from mam.app.jobs import session_events
from mam.app.observation import conversations
from mam.app.sessions import launch
from mam.core import transitions
from mam.core.errors import MamError, PaneGone
from mam.core.session_row import current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.transaction import Transaction
    from mam.app.context.context import World
    from mam.app.context.liveness import Sight
    from mam.core.session_row import Row

_PATIENCE = 1.0


def record_if_dead(world: World, row: Row, error: MamError | None = None) -> Row:
    """Look at the session; if its process is gone, commit that and return the new row."""
    sight = see_one(world, row)
    if sight.state not in (DEAD, GONE):
        return row
    done = record_death(world, row, sight)
    if error is not None:
        error.session = done
    return done


def record_death(world: World, row: Row, sight: Sight) -> Row:
    """Commit that a session's process is gone."""
    status = exit_status(world, row, sight)
    said = conversations.told(world, row)

    def work(draft: Transaction) -> Row:
        current = draft.get(row["id"]) or row
        if not is_running(current) or not claims.is_free(draft, row["id"], row["name"]):
            # It ended already, or somebody is ending it just now: theirs to record.
            return current
        launch.discard(world, row["id"])
        seen = conversations.captured(world, current, said, draft.rows)
        on_disk = bool(conversations.on_disk(world, seen, current_conversation(seen)))
        done = draft.put(
            transitions.died(
                seen, {**caller.action(world, "died"), "by": "mam"}, on_disk=on_disk, exit_status=status
            )
        )
        session_events.died(world, draft, done, status)
        draft.log(caller.actor(world), "died", done, sight.reason, exit_status=status)
        return done

    done = claims.change(world, work)
    session_events.settled(world, done)
    if not is_running(done):
        launch.leave_to_stranger(world, row, sight.pane)
    return done


def exit_status(world: World, row: Row, sight: Sight) -> int | None:
    """Return the exit status that tmux kept of a dead pane; a signal counts as 128 and up."""
    pane = sight.pane
    if pane is None or sight.state != DEAD:
        return None
    if pane.dead_status is None and pane.dead_signal is None:
        try:
            deadline = time.monotonic() + load_adjusted_clock.stretched(_PATIENCE)
            pane = world.tmux(row["tmux_server"]).dead_status(pane.id, pane.server_pid, deadline)
        except PaneGone:
            return None
    return pane.dead_status if pane.dead_status is not None else _from_signal(pane.dead_signal)


def _from_signal(number: int | None) -> int | None:
    return None if number is None else 128 + number
