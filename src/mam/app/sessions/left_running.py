"""Processes that a session has detached (`setsid -f`), and that still run after its end.

They are recognised by the random path of the launch secret in their environment. mam ends no process by its
environment: it names them, and a person decides.
"""

from __future__ import annotations

import os

from mam.adapters.store.launch_secret import VARIABLE
from mam.adapters.system import exit_watch, process
from mam.app.context import own_command
from mam.core.safe_text import one_line

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
    """Return the processes of launches of this user that have ended: the files of their secrets are gone."""
    folder = os.path.join(context.user_state.launches_folder, "")
    found = {
        identity: command
        for identity, (value, command) in process.carriers(VARIABLE, 0).items()
        if value.startswith(folder) and not os.path.lexists(value)
    }
    return _described(found, 0.0)


def warning(name: str, processes: list[dict[str, Any]]) -> str:
    """Return the sentence about processes that a stop has left running."""
    return f"'{name}' started processes that still run: {described(processes)}; {way_to_end(processes)}"


def described(processes: list[dict[str, Any]]) -> str:
    """Return some processes as text."""
    texts = [f"{entry['pid']} ({entry['command']})" for entry in processes[:_MOST_NAMED]]
    more = len(processes) - _MOST_NAMED
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")


def way_to_end(processes: list[dict[str, Any]]) -> str:
    """Return the command that ends the processes."""
    return f"end them with: kill {' '.join(str(entry['pid']) for entry in processes)}"


def _described(carriers: dict[Identity, list[str]], seconds: float) -> list[dict[str, Any]]:
    left = {identity for identity, command in carriers.items() if not _is_exempt(identity, command)}
    if seconds:
        left = exit_watch.wait_gone(left, seconds)
    return [
        {"pid": identity.pid, "command": one_line(" ".join(carriers[identity]), _LONGEST_COMMAND)}
        for identity in sorted(left, key=lambda identity: identity.pid)
    ]


def _is_exempt(identity: Identity, command: list[str]) -> bool:
    """Tell whether a process is mam or a tmux server: they belong to more than one session."""
    program = os.path.basename(command[0]) if command else ""
    return identity.pid == os.getpid() or program.startswith("tmux") or own_command.is_own(command)
