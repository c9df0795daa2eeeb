"""Finding out which process is a Codex, and which conversation it has open.

npm installs a wrapper that starts the program as its child, with the same arguments. Then the process that
runs hooks and holds locks is a child of the pane's process. Without /proc, mam knows none of this.
"""

from __future__ import annotations

import os

from mam.adapters.agents.codex import files
from mam.adapters.agents.jsonl import is_uuid
from mam.adapters.system import process
from mam.core.activity import UNKNOWN, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class OpenConversation:
    """A conversation that a process has open: since when, and its rollout (None before a first message)."""

    __slots__ = ("conversation", "rollout", "since")

    def __init__(self, conversation: str, since: float, rollout: str | None) -> None:
        self.conversation = conversation
        self.since = since
        self.rollout = rollout

    def turn(self) -> Evidence | None:
        """Return the activity that the rollout shows."""
        return files.read_turn(self.rollout, self.since) if self.rollout else None


def is_program_of(pid: int, pane_pid: int) -> bool:
    """Tell whether a process is the Codex of a pane: the pane's process, or the child of a wrapper there."""
    return pid == pane_pid or wrapper_of(pid) == pane_pid


def wrapper_of(pid: int) -> int | None:
    """Return the wrapper of a Codex: its parent `node /path/codex ARGS`, with the same ARGS as the child."""
    parent = process.parent_of(pid)
    argv, parent_argv = process.command_line(pid) or [], process.command_line(parent or 0) or []
    if parent is None or not argv or parent_argv[2:] != argv[1:] or len(parent_argv) < 2:
        return None
    return parent if os.path.basename(parent_argv[1]).startswith("codex") else None


def read_state(pid: int, start: int, stores: Mapping[str, str]) -> tuple[Evidence, str | None] | None:
    """Return the activity and the conversation of the Codex in a pane."""
    if not start or process.start_of(pid) != start:
        return None
    for candidate in (pid, *process.children(pid)):
        current = current_conversation(candidate, stores) if is_program_of(candidate, pid) else None
        if current:
            # The time is 0, because a listing does not look at the screen while other evidence is fresh.
            lock = Evidence("state-file", UNKNOWN, 0.0, detail="holds the lock of the conversation")
            return current.turn() or lock, current.conversation
    return None


def current_conversation(pid: int, stores: Mapping[str, str]) -> OpenConversation | None:
    """Return the present conversation of a process; after /clear the process has the old one open as well."""
    candidates = [item for item in open_conversations(pid, stores) if not files.is_subagent(item.rollout)]
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    return max(candidates, key=lambda item: max(item.since, turn.at if (turn := item.turn()) else 0.0))


def open_conversations(pid: int, stores: Mapping[str, str]) -> list[OpenConversation]:
    """Return the conversations whose locks a process has open."""
    folder = files.locks_folder(stores)
    if folder is None:
        return []
    below = f"{os.path.realpath(folder)}/"
    paths = process.open_files(pid)
    rollouts = {ident: path for path in paths if (ident := files.conversation_of(path))}
    conversations = []
    for path in paths:
        conversation = path.removeprefix(below).removesuffix(".lock")
        if not path.startswith(below) or not is_uuid(conversation):
            continue
        try:
            since = os.stat(path).st_mtime
        except OSError:
            continue
        rollout = rollouts.get(conversation) or _find_rollout(conversation, stores)
        conversations.append(OpenConversation(conversation, since, rollout))
    return conversations


def _find_rollout(conversation: str, stores: Mapping[str, str]) -> str | None:
    try:
        return files.find_rollout(conversation, stores)
    except OSError:
        return None


def holders(conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return (pid, start) of each Codex that has a conversation open; of its wrapper, if it has one."""
    path = files.lock_path(conversation, stores)
    try:
        lock = os.stat(path or "")
    except OSError:
        return []
    processes = []
    for pid in process.lockers(lock.st_ino):
        # None: the process is another user's. The inode number matches, so mam counts the process.
        if process.has_open(pid, lock) is False:
            continue
        outer = wrapper_of(pid) or pid
        start = process.start_of(outer)
        if start is not None:
            processes.append((outer, start))
    return processes
