"""End a tmux session that no row speaks of, because the caller insists on its exact name."""

from __future__ import annotations

from mam.adapters.system import exit_watch, process
from mam.core import names, stop_escalation
from mam.core.errors import NotAllowed, PaneGone, StopUnconfirmed, TerminalsDown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context
    from mam.core.caller import Caller

SIGKILL = 9


def stop_unregistered(
    context: Context, caller: Caller, name: str, tmux_server: str | None = None, reason: str | None = None
) -> dict[str, Any]:
    """Close every pane of the tmux session, end what is left of their processes, and log it."""
    wanted = names.parse_name(name)
    server = context.server_name(tmux_server)
    tmux = context.tmux(server)
    listing = tmux.panes()
    if not listing.confirmed:
        raise TerminalsDown(f"tmux server '{server}' does not answer", hint=listing.error)
    panes = [pane for pane in listing.panes if pane.session_name == wanted]
    if not panes:
        raise PaneGone(
            f"tmux server '{server}' has no session named '{wanted}'", hint="--tmux-server names another"
        )
    # The pid of a dead pane may be a stranger's by now.
    tree = {one for pane in panes if not pane.dead for one in process.tree(pane.pid, pane.tty)}
    if process.me() in tree:
        raise NotAllowed(f"this command runs inside '{wanted}'", hint="stop it from outside")
    for pane in panes:
        tmux.kill_pane(pane.id, mark=None)
    left = exit_watch.wait_gone(tree, stop_escalation.GRACE[stop_escalation.HANG_UP])
    for identity in left:
        process.signal(identity, SIGKILL)
    if left and exit_watch.wait_gone(left, stop_escalation.GRACE[stop_escalation.KILL]):
        raise StopUnconfirmed(f"processes of '{wanted}' are still there")
    who = caller.name
    context.registry.note(
        lambda draft: draft.log(
            who,
            "stop",
            None,
            reason or "not registered, --force-no-yaml",
            name=wanted,
            server=server,
        )
    )
    return {
        "stopped": wanted,
        "tmux_server": server,
        "registered": False,
        "panes": [pane.id for pane in panes],
    }
