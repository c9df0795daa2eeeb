"""Show a session to the person: switch the tmux client we sit in, or say what to execute."""

from __future__ import annotations

from mam.app.context.liveness import see_one
from mam.app.observation.ls import describe
from mam.core.activity import WAITING
from mam.core.errors import PaneGone, Refused, TerminalsDown, Usage
from mam.core.liveness import Liveness
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context


def attach(context: Context, target: str | None = None, *, next_waiting: bool = False) -> dict[str, Any]:
    """Return `{session, switched, argv, environ}`; switched is True when nothing is left to do."""
    name = _next_waiting(context, target) if next_waiting else target
    if name is None:
        name = _only_one(context)
    row = context.registry.view().find(name)
    sight = see_one(context, row)
    if sight.state == Liveness.UNKNOWN:
        raise TerminalsDown(f"'{row['name']}' cannot be shown: {sight.reason}")
    if sight.pane is None or sight.pane.mark not in ("", row.get("id")):
        raise PaneGone(f"'{row['name']}' has no pane", hint=f"mam resume {row['name']}")
    tmux = context.tmux(row["tmux_server"])
    answer: dict[str, Any] = {"session": row["name"], "switched": False, "argv": [], "environ": {}}
    if context.environ.get("TMUX") and _server_pid(context) == sight.pane.server_pid:
        tmux.switch_client(sight.pane.session_id, context.environ)
        return {**answer, "switched": True}
    environ = {key: value for key, value in context.environ.items() if key not in ("TMUX", "TMUX_PANE")}
    return {**answer, "argv": tmux.attach_argv(sight.pane.session_id), "environ": environ}


def _server_pid(context: Context) -> int | None:
    """Return the pid of the tmux server that we sit in: TMUX is socket,pid,session."""
    parts = context.environ.get("TMUX", "").rsplit(",", 2)
    return int(parts[1]) if len(parts) == 3 and parts[1].isdigit() else None


def _only_one(context: Context) -> str:
    running = [row["name"] for row in context.registry.view().rows if is_running(row)]
    if len(running) == 1:
        return running[0]
    if not running:
        raise Refused("no session is running here", hint="mam create --agent KIND starts one")
    raise Usage("name the session to attach to", hint=f"running: {', '.join(running[:8])}")


def _next_waiting(context: Context, after: str | None) -> str:
    """Return the next session in the list, behind the one we sit in, that waits for a person."""
    entries = describe(context, context.registry.view(), is_running, thorough=True)
    here = after or context.environ.get("MAM_SESSION") or _current_pane_session(context, entries)
    names: list[str] = [one["name"] for one in entries]
    start = next((number for number, one in enumerate(entries) if here in (one["name"], one["id"])), -1)
    for step in range(1, len(entries) + 1):
        one = entries[(start + step) % len(entries)]
        if one["activity"] == WAITING:
            return names[(start + step) % len(entries)]
    raise Refused("no session waits for a person", hint="mam ls shows what they do")


def _current_pane_session(context: Context, entries: list[dict[str, Any]]) -> str | None:
    pane, server = context.environ.get("TMUX_PANE"), _server_pid(context)
    return next(
        (
            one["name"]
            for one in entries
            if (one["pane"].get("id"), one["pane"].get("server_pid")) == (pane, server)
        ),
        None,
    )
