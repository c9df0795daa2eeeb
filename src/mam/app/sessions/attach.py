"""Show a session to the person: switch the tmux client of this terminal, or return what to execute."""

from __future__ import annotations

from mam.app.context.caller import tmux_server_pid
from mam.app.context.liveness import check_liveness
from mam.app.observation.conversations import way_to_continue
from mam.app.observation.foreign_root import with_own_pane
from mam.app.observation.ls import describe
from mam.core.activity import WAITING
from mam.core.errors import PaneGone, Refused, TerminalsDown, Usage
from mam.core.liveness_values import Liveness
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context


def attach(context: Context, target: str | None = None, *, next_waiting: bool = False) -> dict[str, Any]:
    """Return `{session, switched, argv, environ}`; if `switched` is False, the caller executes `argv`."""
    name = _next_waiting(context, target) if next_waiting else target
    if name is None:
        name = _only_running_session(context)
    context, row = with_own_pane(context, context.view_to_show().find(name))
    liveness = check_liveness(context, row)
    if liveness.state == Liveness.UNKNOWN:
        raise TerminalsDown(f"'{row['name']}' cannot be shown: {liveness.reason}")
    if liveness.pane is None or liveness.pane.mark not in ("", row.get("id")):
        raise PaneGone(f"'{row['name']}' has no pane", hint=way_to_continue(context, row))
    tmux = context.tmux(row["tmux_server"])
    document: dict[str, Any] = {"session": row["name"], "switched": False, "argv": [], "environ": {}}
    if context.environ.get("TMUX") and _server_pid(context) == liveness.pane.server_pid:
        tmux.switch_client(liveness.pane.session_id, context.environ)
        return {**document, "switched": True}
    environ = {key: value for key, value in context.environ.items() if key not in ("TMUX", "TMUX_PANE")}
    return {**document, "argv": tmux.attach_argv(liveness.pane.session_id), "environ": environ}


def _server_pid(context: Context) -> int | None:
    """Return the pid of the tmux server of this terminal."""
    return tmux_server_pid(context.environ.get("TMUX", ""))


def _only_running_session(context: Context) -> str:
    running = [row["name"] for row in context.view_to_show().rows if is_running(row)]
    if len(running) == 1:
        return running[0]
    if not running:
        raise Refused("no session of this root is running", hint="mam create --agent KIND starts one")
    raise Usage("name the session to attach to", hint=f"running: {', '.join(running[:8])}")


def _next_waiting(context: Context, after: str | None) -> str:
    """Return the next session that waits for a person, in list order after the current session."""
    entries = describe(context, context.view_to_show(), is_running, thorough=True)
    current = after or context.environ.get("MAM_SESSION") or _current_pane_session(context, entries)
    names: list[str] = [entry["name"] for entry in entries]
    start = next(
        (position for position, entry in enumerate(entries) if current in (entry["name"], entry["id"])), -1
    )
    for step in range(1, len(entries) + 1):
        entry = entries[(start + step) % len(entries)]
        if entry["activity"] == WAITING:
            return names[(start + step) % len(entries)]
    raise Refused("no session waits for a person", hint="mam ls shows the activity of each session")


def _current_pane_session(context: Context, entries: list[dict[str, Any]]) -> str | None:
    pane, server = context.environ.get("TMUX_PANE"), _server_pid(context)
    return next(
        (
            entry["name"]
            for entry in entries
            if (entry["pane"].get("id"), entry["pane"].get("server_pid")) == (pane, server)
        ),
        None,
    )
