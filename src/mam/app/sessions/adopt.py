"""Register an agent that somebody started in tmux by hand."""

from __future__ import annotations

import os
from shlex import quote

from mam.adapters.store.rows_and_log import new_session_id
from mam.adapters.system import process
from mam.app.context import claims, resident_start_and_lock
from mam.app.sessions import row_trust
from mam.app.sessions.launch import pane_record
from mam.app.sessions.pane_marks import has_lost_record
from mam.core import names, session_transitions
from mam.core.errors import AmbiguousTarget, NameTaken, NotAllowed, PaneGone, TerminalsDown
from mam.core.root_mark import directory_of
from mam.core.session_row import Status, merged
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.drift_detection import UnregisteredSession
    from mam.core.session_row import Action, Row


def adopt(
    context: Context,
    caller: Caller,
    tmux_session: str,
    *,
    agent: str,
    name: str | None = None,
    role: str | None = None,
    pane: str | None = None,
    tmux_server: str | None = None,
) -> Row:
    """Mark a pane as mam's and add a row for it. The program in the pane keeps running untouched."""
    kind_name = names.parse_kind(agent)
    server = context.server_name(tmux_server)
    session_name = names.parse_name(name or tmux_session)
    adopted_pane = _find_pane(context, server, tmux_session, pane, session_name)
    row = new_row(
        context,
        session_name,
        kind_name,
        adopted_pane,
        server=server,
        workspace=adopted_pane.path or context.workspace,
    )
    row["role"] = names.parse_role(role)
    if names.is_session_id(adopted_pane.mark) and context.registry.view().by_id(adopted_pane.mark) is None:
        # The agent was launched with this id, and knows itself by it.
        row["id"] = adopted_pane.mark
    return adopt_pane(context, caller, row, adopted_pane)


def register(context: Context, caller: Caller, stray: UnregisteredSession) -> Row:
    """Add a row for a tmux session that has a name of the original system's pattern."""
    kind = names.parse_kind(names.kind_of_name(stray.name) or "")
    pane = context.tmux(stray.server).pane(stray.pane_id)
    if pane is None or pane.mark or (pane.session_name, pane.pid) != (stray.name, stray.pid):
        raise PaneGone(f"'{stray.name}' has changed since it was found")
    row = new_row(context, stray.name, kind, pane, server=stray.server, workspace=stray.path)
    row["last_visible_status"] = "auto-registered"
    return adopt_pane(context, caller, row, pane)


def new_row(context: Context, name: str, kind: str, pane: Pane, *, server: str, workspace: str) -> Row:
    """Return the row of an agent that runs already."""
    return {
        "id": new_session_id(),
        "name": name,
        "agent": kind,
        "workspace": workspace,
        "tmux_server": server,
        "start_command": _command(pane, kind),
        "stores": context.kind(kind).stores(context.environ),
        "last_visible_status": Status.RUNNING,
    }


def adopt_pane(context: Context, caller: Caller, row: Row, pane: Pane, *, rename: bool = True) -> Row:
    """Reserve the name, mark the pane and commit the row. With `rename` also rename the tmux session."""

    def reserve(transaction: Transaction) -> float:
        if transaction.named(row["name"]) or not claims.is_free(transaction, row["id"], row["name"]):
            raise NameTaken(
                f"a session named '{row['name']}' is registered already",
                hint="choose another name with --session",
            )
        notes = {"row": row, "rename": rename}
        transaction.intents.put(claims.new_intent(row["id"], row["name"], "adopt", transaction.now, notes))
        return transaction.now

    reserved_at = claims.commit_claim(context, reserve)
    try:
        row_trust.note_launch(context, row)
        if rename and pane.session_name != row["name"]:
            context.tmux(row["tmux_server"]).rename_session(pane.session_id, row["name"])
        if pane.mark:
            context.tmux(row["tmux_server"]).unmark(pane.id, pane.mark)
        if not context.tmux(row["tmux_server"]).claim(pane.id, row["id"], context.root_mark):
            raise NotAllowed(f"pane {pane.id} was adopted by another process just now")
        return bind(context, caller, row, pane)
    except BaseException as error:
        claims.release_after_error(context, row["id"], reserved_at, error)
        raise


def bind(context: Context, caller: Caller, row: Row, pane: Pane) -> Row:
    """Commit the row of an adopted pane and end the intent. Recovery calls this too."""

    def work(transaction: Transaction) -> Row:
        action = caller.action("adopt", context.now())
        committed_row = transaction.add(running_row(row, pane, action))
        transaction.intents.end(row["id"])
        transaction.log(action["by"], "adopt", committed_row, server=row["tmux_server"])
        return committed_row

    committed_row = claims.change(context, work)
    resident_start_and_lock.ensure(context)
    return committed_row


def running_row(row: Row, pane: Pane, action: Action) -> Row:
    """Return the row of an agent that runs already, with its pane."""
    at = action["at_epoch"]
    return merged(
        row,
        **{**session_transitions.alive_fields(), "last_visible_status": row.get("last_visible_status")},
        status=Status.RUNNING,
        pane=pane_record(pane, row["start_command"][0], row["workspace"]),
        tmux_session_id=pane.session_id,
        created_at=stamp(at),
        created_at_epoch=at,
        last_action=action,
    )


def _find_pane(
    context: Context, server: str, tmux_session: str, pane_id: str | None, session_name: str
) -> Pane:
    listing = context.tmux(server).panes(full=True)
    if not listing.confirmed:
        raise TerminalsDown(listing.error or "")
    panes = [
        pane
        for pane in listing.panes
        if pane.session_name == tmux_session and (pane_id is None or pane.id == pane_id) and not pane.dead
    ]
    if not panes:
        tmux_sessions = sorted({pane.session_name for pane in listing.panes})
        raise PaneGone(
            f"tmux server '{server}' has no live pane in a session named '{tmux_session[:100]}'",
            hint=f"it has the sessions {', '.join(tmux_sessions[:8])}"
            if tmux_sessions
            else "it has no sessions; choose another server with --tmux-server",
        )
    if len(panes) > 1:
        ids = ", ".join(pane.id for pane in panes)
        raise AmbiguousTarget(
            f"'{tmux_session}' has {len(panes)} panes ({ids})", hint="choose one with --pane"
        )
    if session_name != tmux_session and any(pane.session_name == session_name for pane in listing.panes):
        raise NameTaken(f"tmux server '{server}' has a session named '{session_name}' already")
    if panes[0].mark and not has_lost_record(context, panes[0]):
        root = directory_of(panes[0].root) or "another root"
        way = f"go to that session: cd {quote(root)}" if os.path.isdir(root) else None
        raise NotAllowed(f"pane {panes[0].id} is a session of {root} already", hint=way)
    return panes[0]


def _command(pane: Pane, kind: str) -> list[str]:
    """Return the command of the running agent, for a later launch.

    The process of the pane may be a shell that started the agent. Then the bare program is returned.
    """
    argv = process.command_line(pane.pid) or []
    return [kind, *argv[1:]] if argv and argv[0].rpartition("/")[2] == kind else [kind]
