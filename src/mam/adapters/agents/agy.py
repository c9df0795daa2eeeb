"""Antigravity (`agy`): known from its documents only, so mam neither reads its screen nor types into it.

`agy --conversation ID` resumes a conversation. Below `~/.gemini/antigravity-cli` are `conversations/ID.db`,
`brain/ID/` and `cache/last_conversations.json`, which names the last conversation of each workspace. Two
sessions in one directory share an entry of that file, so it does not prove whose conversation it is. A
conversation belongs to a session if the session's process has its database open.
"""

from __future__ import annotations

import json
import os
import re

from mam.adapters.agents.caller_arguments import Options
from mam.adapters.agents.jsonl import is_uuid
from mam.adapters.agents.kind import Kind, Launch
from mam.adapters.agents.open_regular import open_regular_file
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
# mam knows no other options of this program.
_OPTIONS = Options(flags=(), single=())


class Agy(Kind):
    """Launches `agy` and finds its conversations."""

    name = "agy"
    # mam types this only into an input box that it sees empty. It never sees that of agy: a stop hangs up.
    exit_word = "Exit"
    can_resume = True
    has_state_file = True

    def stores(self, environ: Mapping[str, str]) -> dict[str, str]:
        """mam knows no variable that moves the files, so it keeps the home."""
        return {HOME: environ.get(HOME) or os.path.expanduser("~")}

    def launch(self, request: Request) -> Launch:
        """Pass the conversation; the arguments of the caller come last."""
        args = request.command[1:]
        _OPTIONS.refuse(args, [_CHOOSES], hint="mam resume NAME, or mam adopt")
        resume = [_CHOOSES, request.conversation] if request.resume and request.conversation else []
        return Launch([request.program, *resume, *args])

    def on_disk(self, conversation: str, workspace: str, stores: Mapping[str, str]) -> bool | None:
        """Look for the database of the conversation."""
        if not is_uuid(conversation) or not stores.get(HOME):
            return None
        try:
            os.stat(os.path.join(stores[HOME], FOLDER, "conversations", f"{conversation}.db"))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return None
        return True

    def conversations(self, workspace: str, stores: Mapping[str, str]) -> list[str]:
        """Return the last conversation of the workspace, of whatever session."""
        last = _last_conversation(workspace, stores)
        return [last] if last and self.on_disk(last, workspace, stores) else []

    def purge_paths(
        self, conversation: str, workspace: str, stores: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        """Return the database, the files of SQLite beside it, and the folder; the shared map stays."""
        if not is_uuid(conversation) or not stores.get(HOME):
            return []
        names = [f"conversations/{conversation}.db{ending}" for ending in ("", "-wal", "-shm")]
        return [(stores[HOME], f"{FOLDER}/{name}") for name in (*names, f"brain/{conversation}")]

    def read_state(
        self, pid: int, start: int, stores: Mapping[str, str]
    ) -> tuple[Evidence, str | None] | None:
        """Return the conversation whose database the process has open; mam does not know the activity."""
        if process.start_of(pid) != start:
            return None
        open_ids = _open_conversations(pid, stores)
        if len(open_ids) > 1:
            # The agent changed its conversation. The map names the present one, if it is one of these.
            open_ids &= {_last_conversation(process.working_directory(pid) or "", stores) or ""}
        if len(open_ids) != 1:
            return None
        (conversation,) = open_ids
        return Evidence("state-file", UNKNOWN, 0.0, detail=f"has {conversation}.db open"), conversation

    def holders(self, conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
        """Return the processes that have the database open, without the children of such processes."""
        pids = {pid for pid in process.pids() if conversation in _open_conversations(pid, stores)}
        outer = [pid for pid in pids if not pids & {ancestor.pid for ancestor in process.ancestors(pid)}]
        return [(pid, start) for pid in outer if (start := process.start_of(pid)) is not None]


def _last_conversation(workspace: str, stores: Mapping[str, str]) -> str | None:
    path = os.path.join(stores.get(HOME) or "", FOLDER, "cache", "last_conversations.json")
    try:
        with open_regular_file(path) as file:
            last_of_workspace = json.loads(file.read(_LARGEST_MAP))
    except (OSError, ValueError, RecursionError):
        return None
    last = last_of_workspace.get(workspace) if isinstance(last_of_workspace, dict) else None
    return last if isinstance(last, str) and is_uuid(last) else None


def _open_conversations(pid: int, stores: Mapping[str, str]) -> set[str]:
    """Return the conversations of this store whose database a process has open."""
    store = os.path.realpath(os.path.join(stores.get(HOME) or "", FOLDER))
    conversations = set()
    for path in process.open_files(pid):
        match = _DATABASE.search(path)
        if match and path.startswith(f"{store}/") and is_uuid(match[1]):
            conversations.add(match[1])
    return conversations
