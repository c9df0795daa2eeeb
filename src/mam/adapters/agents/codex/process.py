"""Which process is a Codex, and which conversation it has open.

npm installs a wrapper that starts the program as its child, with the same arguments: what speaks and holds
locks is then a child of the pane's process. Where there is no /proc nothing of this is known.
"""

from __future__ import annotations

import os

from mam.adapters.agents.codex import files
from mam.adapters.agents.jsonl import UUID
from mam.adapters.system import process
from mam.core.activity import UNKNOWN, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Open:
    """A conversation that a process has open: since when, and its rollout once something was said."""

    __slots__ = ("conversation", "rollout", "since")

    def __init__(self, conversation: str, since: float, rollout: str | None) -> None:
        self.conversation = conversation
        self.since = since
        self.rollout = rollout

    def turn(self) -> Evidence | None:
        """Return what its rollout says about the turn."""
        return files.read_turn(self.rollout, self.since) if self.rollout else None


def is_program_of(pid: int, pane_pid: int) -> bool:
    """Tell whether a process is the pane's Codex itself, or the program that the pane's wrapper started."""
    return pid == pane_pid or wrapper_of(pid) == pane_pid


def wrapper_of(pid: int) -> int | None:
    """Return the wrapper that started a Codex: `node /path/codex ARGS`, and the child has just these."""
    parent = process.parent_of(pid)
    own, others = process.command_line(pid) or [], process.command_line(parent or 0) or []
    if parent is None or not own or others[2:] != own[1:] or len(others) < 2:
        return None
    return parent if os.path.basename(others[1]).startswith("codex") else None


def read_state(pid: int, start: int, stores: Mapping[str, str]) -> tuple[Evidence, str | None] | None:
    """Return the turn and the conversation of the Codex that a pane's process is or wraps."""
    if not start or process.start_of(pid) != start:
        return None
    for one in (pid, *process.children(pid)):
        found = current(one, stores) if is_program_of(one, pid) else None
        if found:
            # At no time: a listing that held it for fresh would not look at the screen.
            quiet = Evidence("state-file", UNKNOWN, 0.0, detail="its lock on the conversation")
            return found.turn() or quiet, found.conversation
    return None


def current(pid: int, stores: Mapping[str, str]) -> Open | None:
    """Return the conversation that a process has now: after /clear it has the one before open as well."""
    found = [one for one in opened(pid, stores) if not files.is_subagent(one.rollout)]
    if len(found) < 2:
        return found[0] if found else None
    return max(found, key=lambda one: max(one.since, said.at if (said := one.turn()) else 0.0))


def opened(pid: int, stores: Mapping[str, str]) -> list[Open]:
    """Return the conversations whose locks a process has open."""
    folder = files.locks_folder(stores)
    if folder is None:
        return []
    below = f"{os.path.realpath(folder)}/"
    paths = process.open_files(pid)
    written = {one: path for path in paths if (one := files.conversation_of(path))}
    found = []
    for path in paths:
        conversation = path.removeprefix(below).removesuffix(".lock")
        if not path.startswith(below) or not UUID.match(conversation):
            continue
        try:
            since = os.stat(path).st_mtime
        except OSError:
            continue
        rollout = written.get(conversation) or _find(conversation, stores)
        found.append(Open(conversation, since, rollout))
    return found


def _find(conversation: str, stores: Mapping[str, str]) -> str | None:
    try:
        return files.find_rollout(conversation, stores)
    except OSError:
        return None


def holders(conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return (pid, start) of the Codex that has a conversation open; a wrapped one goes by its wrapper."""
    path = files.lock_path(conversation, stores)
    try:
        wanted = os.stat(path or "")
    except OSError:
        return []
    found = []
    for pid in process.lockers(wanted.st_ino):
        # None: another user's. Its number says that it is the one, so it is better not disturbed.
        if process.has_open(pid, wanted) is False:
            continue
        known = wrapper_of(pid) or pid
        start = process.start_of(known)
        if start is not None:
            found.append((known, start))
    return found
