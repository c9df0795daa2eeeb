"""Processes that a session has detached (`setsid -f`), and that still run after its end.

They are recognised by the random path of the launch secret in their environment. mam ends no process by its
environment: it names them, and a person decides.
"""

from __future__ import annotations

import os

from mam.adapters.store.launch_secret import VARIABLE
from mam.adapters.system import exit_watch, process
from mam.app.context import own_command
from mam.app.context.liveness import identity_of
from mam.app.sessions.pane_marks import is_own_server
from mam.core.safe_text import one_line
from mam.core.session_row import is_running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.system.process import Identity
    from mam.app.context.context import Context
    from mam.core.session_row import Row

_LONGEST_COMMAND = 200
_MOST_NAMED = 5


def find(context: Context, row: Row, seconds: float) -> list[dict[str, Any]]:
    """Return the processes of the last launch of an ended session as `{pid, command}`.

    They get some seconds to end, as a hook of the agent's own end may still run.
    """
    file = context.user_state.secret_files(context.root_id).get(row["id"])
    if file is None:
        return []
    carriers = process.carriers(VARIABLE, row["pane"].get("pid_start") or 0)
    found = {identity: command for identity, (value, command) in carriers.items() if value == file}
    return _described(found, seconds)


def find_all(context: Context) -> list[dict[str, Any]]:
    """Return the processes of launches of this user that have ended: the files of their secrets are gone.

    A session may have lost its secret and its row, and still run: what belongs to it is left out.
    """
    folder = os.path.join(context.user_state.launches_folder, "")
    found = {
        identity: command
        for identity, (value, command) in process.carriers(VARIABLE, 0).items()
        if value.startswith(folder) and not os.path.lexists(value)
    }
    left = _described(found, 0.0)
    if not left:
        return []
    live = _LiveSessions(context)
    return [entry for entry in left if not live.has(entry["pid"])]


def warning(name: str, processes: list[dict[str, Any]]) -> str:
    """Return the sentence about processes that a stop has left running."""
    return f"'{name}' started processes that still run: {described(processes)}; {way_to_end(processes)}"


def warning_of_others(name: str, processes: list[dict[str, Any]]) -> str:
    """Return the sentence about processes of another user, which mam cannot end."""
    return (
        f"'{name}' started processes of another user that still run: {described(processes)};"
        f" {way_to_end(processes, 'sudo kill')}"
    )


def described(processes: list[dict[str, Any]]) -> str:
    """Return some processes as text."""
    texts = [f"{entry['pid']} ({entry['command']})" for entry in processes[:_MOST_NAMED]]
    more = len(processes) - _MOST_NAMED
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")


def way_to_end(processes: list[dict[str, Any]], command: str = "kill") -> str:
    """Return the command that ends the processes."""
    return f"end them with: {command} {' '.join(str(entry['pid']) for entry in processes)}"


def _described(carriers: dict[Identity, list[str]], seconds: float) -> list[dict[str, Any]]:
    left = {identity for identity, command in carriers.items() if not _is_exempt(identity, command)}
    if seconds:
        left = exit_watch.wait_gone(left, seconds)
    return [
        {"pid": identity.pid, "command": one_line(" ".join(carriers[identity]), _LONGEST_COMMAND)}
        for identity in sorted(left, key=lambda identity: identity.pid)
    ]


class _LiveSessions:
    """Tells which processes belong to a session that runs, of any root, by rows and by marks of panes."""

    def __init__(self, context: Context) -> None:
        self.context = context
        rows = [row for row in context.registry.view_to_show().rows if is_running(row)]
        identities = {identity_of(row) for row in rows}
        self._leaders = {
            identity.pid for identity in identities if identity is not None and process.is_alive(identity)
        }
        # The processes in the marked panes of each tmux server; None for a server that does not answer.
        self._panes: dict[str, set[int] | None] = {}

    def has(self, pid: int) -> bool:
        """Tell whether a process is the agent of such a session or descends from it, or may be that."""
        line = {facts.pid for facts in process.lineage(pid)}
        if line & self._leaders:
            return True
        # tmux names its socket first: other roots may use servers that this one does not know.
        socket = (process.environment(pid) or {}).get("TMUX", "").partition(",")[0]
        if not is_own_server(socket) or not os.path.isabs(socket):
            return False
        pids = self._marked(socket)
        return pids is None or bool(line & pids)

    def _marked(self, socket: str) -> set[int] | None:
        if socket not in self._panes:
            listing = self.context.tmux(socket).panes()
            pids = {pane.pid for pane in listing.panes if pane.mark and not pane.dead}
            self._panes[socket] = pids if listing.confirmed else None
        return self._panes[socket]


def _is_exempt(identity: Identity, command: list[str]) -> bool:
    """Tell whether a process is mam or a tmux server: they belong to more than one session."""
    program = os.path.basename(command[0]) if command else ""
    return identity.pid == os.getpid() or program.startswith("tmux") or own_command.is_own(command)
