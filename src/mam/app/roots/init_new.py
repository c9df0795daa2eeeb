"""Begins anew in a root whose state is gone: --new."""

from __future__ import annotations

import os
from contextlib import suppress

from mam.adapters.store import database
from mam.adapters.store.root_identity import has_content
from mam.app.context import claims, resident_start_and_lock
from mam.app.context.authority import require_person
from mam.app.roots.init_option_in_other_state import answer_in_other_state
from mam.app.sessions.pane_marks import has_lost_record, live_panes
from mam.core.root_mark import directory_of
from mam.core.root_state import RootState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller

    Document = dict[str, Any]

_COMMAND = "mam init --new"


def begin_anew(context: Context, caller: Caller) -> Document:
    """Make a fresh root with a fresh id where the recorded state is missing, or where there is none yet.

    A registry file that is still there is taken in. `panes` are the live panes that the lost state had.
    """
    require_person(caller, _COMMAND)
    context.root.forget_verdict()
    verdict = context.root.verdict()
    # A former try may have recorded the new root and then failed.
    is_begun = verdict.state == RootState.KNOWN and not has_content(context.paths.db)
    if verdict.state not in (RootState.MISSING, RootState.NEW) and not is_begun:
        return answer_in_other_state(context, _COMMAND)
    if verdict.state == RootState.MISSING:
        # It may not have noticed yet that the state is gone.
        resident_start_and_lock.end(context)
        _move_away(context)
        if verdict.known is not None:
            # The new folder may get the inode of the lost one.
            context.user_state.lose_root(verdict.known.id)
        with database.errors(context.paths.state):
            context.paths.make_state_folder()
            context.root.record(os.urandom(8).hex(), is_complete=False)
        context.root.forget_verdict()
    claims.change(context, lambda transaction: transaction.log(caller.name, "init", None, _COMMAND))
    # The registry file may have been left, and its agents may still run.
    for tmux, pane in list(live_panes(context, context.registry.view().rows)):
        tmux.mark(pane.id, pane.mark, context.root_mark)
    return {"registry": context.paths.yaml, "changed": True, "panes": _panes_without_row(context)}


def _move_away(context: Context) -> None:
    """Take the place of an emptied database, which a process may still have open; keep what is in its log."""
    context.registry.close()
    db = context.paths.db
    with database.errors(db):
        for path in (db, f"{db}-shm"):
            with suppress(FileNotFoundError):
                os.unlink(path)
        with suppress(FileNotFoundError):
            os.replace(f"{db}-wal", f"{db}-wal.former")


def _panes_without_row(context: Context) -> list[Document]:
    """Return the live panes that carry the mark of this root and a session that it does not have."""
    server = context.server_name(None)
    return [
        {"pane": pane.id, "tmux_session": pane.session_name, "tmux_server": server, "session_id": pane.mark}
        for pane in context.tmux(server).panes(full=True).panes
        if pane.mark
        and not pane.dead
        and directory_of(pane.root) == context.paths.root
        and has_lost_record(context, pane)
    ]
