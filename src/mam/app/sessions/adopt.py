"""Register an agent that somebody started in tmux by hand."""

from __future__ import annotations

from mam.adapters.store.transaction import new_session_id
from mam.adapters.system import process
from mam.app.context import claims, start_resident
from mam.app.sessions.launch import pane_record
from mam.core import names, transitions
from mam.core.errors import AmbiguousTarget, NameTaken, NotAllowed, PaneGone, TerminalsDown
from mam.core.session_row import Status, merged
from mam.core.times import stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.transaction import Transaction
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.drift import Stray
    from mam.core.session_row import Row


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
    """Mark a pane as ours and give it a row; the program in it is not touched."""
    kind_name = names.parse_kind(agent)
    server = context.server_name(tmux_server)
    wanted = names.parse_name(name or tmux_session)
    found = _find(context, server, tmux_session, pane, wanted)
    row = new_row(context, wanted, kind_name, found, server=server, workspace=found.path or context.workspace)
    row["role"] = names.parse_role(role)
    return take(context, caller, row, found)


def register(context: Context, caller: Caller, stray: Stray) -> Row:
    """Give a row to a session that the original system, or a person in its way, has started."""
    kind = names.parse_kind(names.kind_of_name(stray.name) or "")
    pane = context.tmux(stray.server).pane(stray.pane_id)
    if pane is None or pane.mark or (pane.session_name, pane.pid) != (stray.name, stray.pid):
        raise PaneGone(f"'{stray.name}' is not any more what it was")
    row = new_row(context, stray.name, kind, pane, server=stray.server, workspace=stray.path)
    row["last_visible_status"] = "auto-registered"
    return take(context, caller, row, pane)


def new_row(context: Context, name: str, kind: str, pane: Pane, *, server: str, workspace: str) -> Row:
    """Return the row of an agent that runs already, as far as it can be known."""
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


def take(context: Context, caller: Caller, row: Row, pane: Pane, *, rename: bool = True) -> Row:
    """Reserve the name, mark the pane, and commit the row; `rename` gives it to the tmux session too."""

    def reserve(draft: Transaction) -> float:
        if draft.named(row["name"]) or not claims.is_free(draft, row["id"], row["name"]):
            raise NameTaken(
                f"a session named '{row['name']}' is registered already", hint="give another with --session"
            )
        notes = {"row": row, "rename": rename}
        draft.intents.put(claims.new_intent(row["id"], row["name"], "adopt", draft.now, notes))
        return draft.now

    reserved_at = claims.claim(context, reserve)
    try:
        context.user_state.remember_root(context.paths.root, context.paths.yaml)
        context.user_state.note_start(context.paths.root, row["id"])
        if rename and pane.session_name != row["name"]:
            context.tmux(row["tmux_server"]).rename_session(pane.session_id, row["name"])
        if not context.tmux(row["tmux_server"]).claim(pane.id, row["id"], context.paths.root):
            raise NotAllowed(f"pane {pane.id} was adopted by somebody else just now")
        return bind(context, caller, row, pane)
    except BaseException as error:
        claims.let_go(context, row["id"], reserved_at, error)
        raise


def bind(context: Context, caller: Caller, row: Row, pane: Pane) -> Row:
    """Commit the row of an adopted pane and end the intent; recovery does the same."""

    def work(draft: Transaction) -> Row:
        action = caller.action("adopt", context.now())
        at = action["at_epoch"]
        made = merged(
            row,
            **{**transitions.alive_fields(), "last_visible_status": row.get("last_visible_status")},
            status=Status.RUNNING,
            pane=pane_record(pane, row["start_command"][0], row["workspace"]),
            tmux_session_id=pane.session_id,
            created_at=stamp(at),
            created_at_epoch=at,
            last_action=action,
        )
        done = draft.add(made)
        draft.intents.end(row["id"])
        draft.log(action["by"], "adopt", done, server=row["tmux_server"])
        return done

    done = claims.change(context, work)
    start_resident.ensure(context)
    return done


def _find(context: Context, server: str, tmux_session: str, pane_id: str | None, wanted: str) -> Pane:
    listing = context.tmux(server).panes(full=True)
    if not listing.confirmed:
        raise TerminalsDown(f"tmux server '{server}' does not answer", hint=listing.error)
    panes = [
        pane
        for pane in listing.panes
        if pane.session_name == tmux_session and (pane_id is None or pane.id == pane_id) and not pane.dead
    ]
    if not panes:
        there = sorted({pane.session_name for pane in listing.panes})
        raise PaneGone(
            f"tmux server '{server}' has no such live pane in a session named '{tmux_session[:100]}'",
            hint=f"it has {', '.join(there[:8])}"
            if there
            else "it has no sessions; --tmux-server names another",
        )
    if len(panes) > 1:
        ids = ", ".join(pane.id for pane in panes)
        raise AmbiguousTarget(f"'{tmux_session}' has {len(panes)} panes ({ids})", hint="name one with --pane")
    if wanted != tmux_session and any(pane.session_name == wanted for pane in listing.panes):
        raise NameTaken(f"tmux server '{server}' has a session named '{wanted}' already")
    if panes[0].mark:
        raise NotAllowed(f"pane {panes[0].id} is a session of {panes[0].root or 'another root'} already")
    return panes[0]


def _command(pane: Pane, kind: str) -> list[str]:
    """Return the command as it runs, for a later start; a shell around an agent is not the agent."""
    words = process.command_line(pane.pid) or []
    return [kind, *words[1:]] if words and words[0].rpartition("/")[2] == kind else [kind]
