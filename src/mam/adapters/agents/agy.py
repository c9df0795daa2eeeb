"""Antigravity (`agy`): known from documents only, so nothing of its screen is read and nothing is typed.

What is known: `agy --conversation ID` takes up a conversation, and below `~/.gemini/antigravity-cli` lie
`conversations/ID.db`, `brain/ID/` and `cache/last_conversations.json`, which names the last conversation of
each workspace. Two sessions in one directory share an entry of that map, so it proves nothing about either: a
conversation is a session's own if the session's process has its database open.
"""

from __future__ import annotations

import json
import os
import re

from mam.adapters.agents.arguments import Options
from mam.adapters.agents.jsonl import UUID
from mam.adapters.agents.kind import Kind, Launch
from mam.adapters.agents.open_regular import open_plain
from mam.adapters.system import process
from mam.core.activity import UNKNOWN, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mam.adapters.agents.kind import Request

HOME = "HOME"
FOLDER = ".gemini/antigravity-cli"
_DATABASE = re.compile(r"/conversations/([0-9a-f-]{36})\.db(?:-wal|-shm)?\Z")
_LARGEST_MAP = 4 * 1024 * 1024
_CHOOSES = "--conversation"
# None of them is known.
_OPTIONS = Options(flags=(), single=())


class Agy(Kind):
    """Launches `agy` and finds its conversations."""

    name = "agy"
    # Typed only into a box that is seen to be empty, and no box of it is ever seen: a stop hangs up instead.
    exit_word = "Exit"
    can_resume = True
    has_state_file = True

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """No variable is known that moves its files."""
        return {HOME: environ.get(HOME) or os.path.expanduser("~")}

    def launch(self, request: Request) -> Launch:
        """Pass the conversation; what the caller passed comes last."""
        args = request.command[1:]
        _OPTIONS.refuse(args, [_CHOOSES], hint="mam resume NAME, or mam adopt")
        own = [_CHOOSES, request.conversation] if request.resume and request.conversation else []
        return Launch([request.program, *own, *args])

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """The database is the record."""
        if not UUID.match(conversation) or not stores.get(HOME):
            return None
        try:
            os.stat(os.path.join(stores[HOME], FOLDER, "conversations", f"{conversation}.db"))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return None
        return True

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """The last one of the workspace, whoever had it."""
        found = _last_of(workspace, stores)
        return [found] if found and self.on_disk(found, workspace, stores) else []

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """The database with what SQLite keeps beside it, and its folder; the map is shared and stays."""
        if not UUID.match(conversation) or not stores.get(HOME):
            return []
        names = [f"conversations/{conversation}.db{ending}" for ending in ("", "-wal", "-shm")]
        return [(stores[HOME], f"{FOLDER}/{name}") for name in (*names, f"brain/{conversation}")]

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """The conversation whose database the process has open; its activity is not known."""
        if process.start_of(pid) != start:
            return None
        held = _held_by(pid, stores)
        if len(held) > 1:
            # It went from one to another: the map names where it is, if that is one of its own.
            held &= {_last_of(process.working_directory(pid) or "", stores) or ""}
        if len(held) != 1:
            return None
        (found,) = held
        return Evidence("state-file", UNKNOWN, 0.0, detail=f"has {found}.db open"), found

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """The processes that have its database open; a child of one of them belongs to it."""
        held = {pid for pid in process.pids() if conversation in _held_by(pid, stores)}
        outer = [pid for pid in held if not held & {one.pid for one in process.ancestors(pid)}]
        return [(pid, start) for pid in outer if (start := process.start_of(pid)) is not None]


def _last_of(workspace: str, stores: Mapping[str, str]) -> str | None:
    path = os.path.join(stores.get(HOME) or "", FOLDER, "cache", "last_conversations.json")
    try:
        with open_plain(path) as file:
            found = json.loads(file.read(_LARGEST_MAP))
    except (OSError, ValueError, RecursionError):
        return None
    last = found.get(workspace) if isinstance(found, dict) else None
    return last if isinstance(last, str) and UUID.match(last) else None


def _held_by(pid: int, stores: Mapping[str, str]) -> set[str]:
    """Return the conversations of this store whose database a process has open."""
    store = os.path.realpath(os.path.join(stores.get(HOME) or "", FOLDER))
    held = set()
    for path in process.open_files(pid):
        match = _DATABASE.search(path)
        if match and path.startswith(f"{store}/") and UUID.match(match[1]):
            held.add(match[1])
    return held
