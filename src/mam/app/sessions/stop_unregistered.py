"""End a tmux session that has no row, because the caller asked for it with `--force-no-yaml`."""

from __future__ import annotations

from mam.adapters.system import exit_watch, process
from mam.core import names, stop_escalation
from mam.core.errors import NotAllowed, PaneGone, StopUnconfirmed, TerminalsDown, Unwritable
from mam.core.root_mark import directory_of, is_same_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.tmux.parse import Pane
    from mam.app.context.context import Context
    from mam.core.caller import Caller

SIGKILL = 9


def find_unregistered(context: Context, name: str, tmux_server: str | None = None) -> list[dict[str, Any]]:
    """Return the tmux servers that have a session of exactly this name.

    Each is `{tmux_server, is_default, agent_of}`. `agent_of` is the directory of the root that a live pane of
    the session is marked with, and None without one.

    With `tmux_server` only that server is asked. Otherwise these are: the caller's own, which comes first and
    is the one that `stop_unregistered` looks at by itself, `default`, and those of rows.
    """
    own = context.server_name(None)
    servers = (
        [context.server_name(tmux_server)] if tmux_server else [own, "default", *context.registry.servers()]
    )
    found = []
    for server in dict.fromkeys(servers):
        panes = [pane for pane in context.tmux(server).panes().panes if pane.session_name == name]
        if panes:
            agents = (_root_of(context, pane) for pane in panes if pane.mark and pane.root and not pane.dead)
            found.append({"tmux_server": server, "is_default": server == own, "agent_of": next(agents, None)})
    return found


def _root_of(context: Context, pane: Pane) -> str:
    is_own = is_same_root(pane.root, context.root_mark)
    return context.paths.root if is_own else directory_of(pane.root)


def stop_unregistered(
    context: Context, caller: Caller, name: str, tmux_server: str | None = None, reason: str | None = None
) -> dict[str, Any]:
    """Close every pane of the tmux session, kill the processes that stay, and log the stop."""
    session_name = names.parse_name(name)
    server = context.server_name(tmux_server)
    tmux = context.tmux(server)
    listing = tmux.panes()
    if not listing.confirmed:
        raise TerminalsDown(listing.error or "")
    panes = [pane for pane in listing.panes if pane.session_name == session_name]
    if not panes:
        raise PaneGone(
            f"tmux server '{server}' has no session named '{session_name}'",
            hint="choose another server with --tmux-server",
        )
    # The kernel may have given the pid of a dead pane to another process.
    tree = {identity for pane in panes if not pane.dead for identity in process.tree(pane.pid, pane.tty)}
    if process.me() in tree:
        raise NotAllowed(f"this command runs inside '{session_name}'", hint="run it outside of the session")
    for pane in panes:
        tmux.kill_pane(pane.id, mark=None)
    survivors = exit_watch.wait_gone(tree, stop_escalation.GRACE[stop_escalation.HANG_UP])
    for identity in survivors:
        process.signal(identity, SIGKILL)
    if survivors and exit_watch.wait_gone(survivors, stop_escalation.GRACE[stop_escalation.KILL]):
        raise StopUnconfirmed(f"processes of '{session_name}' still run")
    caller_name = caller.name
    try:
        context.registry.note(
            lambda transaction: transaction.log(
                caller_name,
                "stop",
                None,
                reason or "not registered, --force-no-yaml",
                name=session_name,
                server=server,
            )
        )
    except Unwritable as error:
        context.warn(f"'{session_name}' is stopped, and the stop is not in the log: {error}")
    return {
        "stopped": session_name,
        "tmux_server": server,
        "registered": False,
        "panes": [pane.id for pane in panes],
    }
