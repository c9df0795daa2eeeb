"""Takes the live panes of a root back into a record that is older than they are.

A pane belongs to a session if it carries the session's id and the mark of the root. The row may say that the
session has ended, name an earlier process, or be missing.
"""

from __future__ import annotations

from mam.adapters.store.tables import teams
from mam.app.context.liveness import identity_of
from mam.app.sessions import adopt
from mam.app.sessions.launch import pane_record
from mam.app.sessions.pane_marks import is_own_server
from mam.core import session_transitions
from mam.core.errors import InvalidName, TerminalsDown
from mam.core.names import is_session_id, parse_name
from mam.core.root_mark import is_same_root
from mam.core.session_row import MCP_SERVER, current_conversation, is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mam.adapters.store.rows_and_log import Transaction
    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.caller import Caller
    from mam.core.session_row import Row


class MarkedPane:
    """A live pane with the mark of a root and of a session, and its tmux server."""

    __slots__ = ("pane", "server")

    def __init__(self, server: str, pane: Pane) -> None:
        self.server = server
        self.pane = pane


class TakenBack:
    """The names of the sessions with a live pane, by what the record said of them."""

    __slots__ = ("changed", "running", "without_conversation")

    def __init__(self) -> None:
        # The record lacked them, or said that they had ended.
        self.changed: list[str] = []
        self.running: list[str] = []
        # Those of `changed` of which no conversation is known, although they could be resumed with one.
        self.without_conversation: list[str] = []

    def as_json(self) -> dict[str, list[str]]:
        """Return the fields of the answer of a restore."""
        return {
            "sessions_taken_back": self.changed,
            "sessions_still_running": self.running,
            "conversations_unknown": self.without_conversation,
        }


def marked_panes(context: Context, mark: str, servers: Iterable[str]) -> dict[str, MarkedPane]:
    """Return the live panes with the mark of a root by session; raise TerminalsDown if a server is silent."""
    found: dict[str, MarkedPane] = {}
    for server in sorted(set(servers)):
        if not is_own_server(server):
            continue
        listing = context.resources.tmux(server).panes(full=True)
        if not listing.confirmed:
            raise TerminalsDown(
                f"tmux server '{server}' does not answer, and its agents may run",
            )
        for pane in listing.panes:
            if is_session_id(pane.mark) and not pane.dead and pane.root and is_same_root(pane.root, mark):
                found.setdefault(pane.mark, MarkedPane(server, pane))
    return found


def take_back(
    context: Context, caller: Caller, transaction: Transaction, root_id: str, panes: dict[str, MarkedPane]
) -> TakenBack:
    """Make the row of each pane say what runs there.

    A pane without a row of which mam knows no launch is left to a person: `mam adopt`.
    """
    found = TakenBack()
    for session_id, marked in panes.items():
        row = transaction.get(session_id)
        taken = (
            _new(context, caller, transaction, root_id, marked)
            if row is None
            else _changed(caller, transaction, row, marked)
        )
        if taken is not None:
            transaction.log(caller.name, "restore", taken, "its pane lives")
            found.changed.append(taken["name"])
            if current_conversation(taken) is None and context.kind(taken["agent"]).can_resume:
                found.without_conversation.append(taken["name"])
        elif row is not None:
            found.running.append(row["name"])
    return found


def end_lost_teams(transaction: Transaction, panes: Iterable[MarkedPane]) -> None:
    """End the teams of whose window no pane of a session is left."""
    windows = {(marked.server, marked.pane.server_pid, marked.pane.window_id) for marked in panes}
    for team in teams.listed(transaction):
        if (team.server, team.server_pid, team.window_id) not in windows:
            teams.end(transaction, team.id)


def _changed(caller: Caller, transaction: Transaction, row: Row, marked: MarkedPane) -> Row | None:
    pane, identity = marked.pane, identity_of(row)
    record = pane_record(pane, (row["pane"] or {}).get("cmd") or row["agent"], row["workspace"])
    is_same = identity is not None and (identity.pid, identity.start) == (pane.pid, record["pid_start"])
    if is_same and is_running(row):
        return None
    record["mcp_attachments"] = row["pane"].get("mcp_attachments") or []
    changed = session_transitions.found_alive(
        row,
        caller.action("restore", transaction.now),
        pane=record,
        tmux_session_id=pane.session_id,
        tmux_server=marked.server,
    )
    return transaction.put(changed)


def _new(
    context: Context, caller: Caller, transaction: Transaction, root_id: str, marked: MarkedPane
) -> Row | None:
    """Add the row of a session that the record does not have, by what the user state knows of its launch."""
    pane = marked.pane
    launched = context.user_state.launch_of(root_id, pane.mark)
    if launched is None:
        context.warn(
            f"pane {pane.id} of tmux server '{marked.server}' runs an agent that no record names; "
            f"mam adopt {pane.session_name} --agent KIND takes it back"
        )
        return None
    kind = str(launched["agent"])
    name = _free_name(transaction, pane, kind)
    row = adopt.new_row(
        context, name, kind, pane, server=marked.server, workspace=pane.path or context.paths.root
    )
    row["id"] = pane.mark
    for field in ("start_command", "permissions", "model", "stores"):
        row[field] = launched[field]
    running = adopt.running_row(row, pane, caller.action("restore", transaction.now))
    if launched.get("mcp"):
        running["pane"]["mcp_attachments"] = [MCP_SERVER]
    return transaction.add(running)


def _free_name(transaction: Transaction, pane: Pane, kind: str) -> str:
    """Return the name of the pane's tmux session; in a window of several sessions only one can have it."""
    fallback = f"{kind.lower()}-{pane.mark.removeprefix('s_')}"
    try:
        name = parse_name(pane.session_name)
    except InvalidName:
        return fallback
    return fallback if transaction.named(name) else name
