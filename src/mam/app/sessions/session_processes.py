"""The processes of a session that is being stopped, and how those that outlive the agent are ended."""

from __future__ import annotations

import os

from mam.adapters.system import exit_watch, process
from mam.adapters.system.deadline import Deadline
from mam.app.context import own_command
from mam.app.context.liveness import identity_of
from mam.core import stop_escalation
from mam.core.errors import NotAllowed
from mam.core.safe_text import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.adapters.system.process import Identity
    from mam.app.context.context import Context
    from mam.core.session_row import Row

SIGKILL, SIGTERM = 9, 15
# A process may start others until it is gone: how often mam looks for them, and kills what it finds.
_RESCAN_SECONDS = 0.05
_MOST_KILLS = 5
_LONGEST_COMMAND = 200


class SessionProcesses:
    """The agent, its descendants, and what is left in the terminal sessions that one of them has led.

    Left out are tmux servers, residents, and the agents of other sessions, with all that they started: an
    agent that adopts orphans becomes the parent of a server that it has started for others.
    """

    def __init__(self, context: Context, row: Row) -> None:
        self._context = context
        self._row = row
        self._members: set[Identity] = set()
        # Processes of another user, which mam cannot end.
        self._of_others: set[Identity] = set()
        self._spared: dict[int, bool] = {}
        self._other_agents: set[int] | None = None
        self._are_told = False

    def add_agent(self, root: Identity | None, tty: str | None) -> None:
        """Add the agent, its descendants, and what is on its terminal."""
        if root is not None:
            self._spared[root.pid] = False
            self._members |= process.tree(root, tty, self._is_spared)

    def add_family(self) -> None:
        """Add what the processes have started by now, also those that have ended."""
        self._members |= process.family(self._members, self._is_spared)

    def add_leader(self, leader: Identity | None) -> None:
        """Add an agent that has ended already, so that what is left in its terminal session counts."""
        if leader is not None:
            self._members.add(leader)

    def alive(self) -> set[Identity]:
        """Return the processes that still run, and that mam can end."""
        return {identity for identity in self._members - self._of_others if process.is_alive(identity)}

    def wait_gone(self, seconds: float) -> bool:
        """Wait until no process is left that mam can end; tell whether that is so."""
        return not exit_watch.wait_gone(self._members - self._of_others, seconds)

    def end_children(self) -> bool:
        """End what an ended agent left: wait a moment, ask with SIGTERM, kill. Tell whether mam had to kill.

        Whoever starts another process when it is told to end has been asked: that process is killed.
        """
        if self.wait_gone(stop_escalation.FOLLOW_SECONDS):
            return False
        if not self._are_told:
            self._are_told = True
            self.add_family()
            self._signal(SIGTERM)
            deadline = Deadline(stop_escalation.TERMINATE_SECONDS)
            while not self.wait_gone(_RESCAN_SECONDS):
                self.add_family()
                if deadline.has_passed():
                    break
            self.add_family()
        return bool(self.alive()) and self.kill()

    def kill(self) -> bool:
        """Send SIGKILL until no process is left; True. It repeats, because a process may start others."""
        self._are_told = True
        for _ in range(_MOST_KILLS):
            self.add_family()
            if not self.alive():
                break
            self._signal(SIGKILL)
            self.wait_gone(stop_escalation.GRACE[stop_escalation.KILL] / _MOST_KILLS)
        return True

    def of_others(self) -> list[dict[str, Any]]:
        """Return the living processes of other users as `{pid, command}`."""
        left = sorted(identity.pid for identity in self._of_others if process.is_alive(identity))
        return [
            {"pid": pid, "command": one_line(" ".join(process.command_line(pid) or ["?"]), _LONGEST_COMMAND)}
            for pid in left
        ]

    def _signal(self, number: int) -> None:
        for identity in self.alive():
            try:
                process.signal(identity, number)
            except NotAllowed:
                # One process of another user, as below sudo, must not keep the others alive.
                self._of_others.add(identity)

    def _is_spared(self, pid: int) -> bool:
        """Tell whether a process belongs to more than this session."""
        if pid not in self._spared:
            self._spared[pid] = (
                pid in (self._row["pane"].get("server_pid"), os.getpid())
                or pid in self._agents_of_others()
                or _is_tmux_server(pid)
                or _is_resident(pid)
            )
        return self._spared[pid]

    def _agents_of_others(self) -> set[int]:
        """Return the processes of the other sessions that run in this root."""
        if self._other_agents is None:
            rows = [row for row in self._context.registry.running_rows() if row.get("id") != self._row["id"]]
            identities = {identity_of(row) for row in rows}
            self._other_agents = {identity.pid for identity in identities if identity is not None}
        return self._other_agents


def _is_tmux_server(pid: int) -> bool:
    name = process.short_name(pid)
    if name is None:
        command = process.command_line(pid) or [""]
        return os.path.basename(command[0]).startswith("tmux")
    # A client of tmux that the agent runs is a process like any other.
    return name.startswith("tmux: server")


def _is_resident(pid: int) -> bool:
    command = process.command_line(pid) or []
    return own_command.is_own(command) and "monitor" in command
