"""Which process is a Gemini CLI, and with which conversation it was started.

The program starts itself once more, as a child with the same arguments; the pane has the outer one. It writes
neither a lock nor a pid, so the arguments alone tell.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise

from mam.adapters.agents.gemini import files, record
from mam.adapters.agents.jsonl import UUID
from mam.adapters.system import process
from mam.core.activity import UNKNOWN, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NEW, RESUME = "--session-id", "--resume"
# Seconds after which a prompt that no chat file has must show by other signs, or was taken back.
_TAKEN_UP = 3.0


def read_state(pid: int, start: int, stores: Mapping[str, str]) -> tuple[Evidence, str | None] | None:
    """Return the conversation that the pane's Gemini has now, by its arguments and its directory's log.

    A prompt that is in the log alone is about to be worked on, before anything else shows it.
    """
    launched = _launched(pid) if start and process.start_of(pid) == start else None
    workspace = process.working_directory(pid) if launched else None
    folder = files.project_folder(workspace, stores) if workspace else None
    prompt = record.last_prompt(launched, folder) if launched and folder else None
    if prompt is None or folder is None:
        return None
    found = record.holder_of(prompt, folder)
    if found is None and time.time() - prompt.at < _TAKEN_UP:
        return Evidence("state-file", WORKING, prompt.at, detail="a prompt was submitted"), None
    return (
        (Evidence("state-file", UNKNOWN, prompt.at, detail="the log of its prompts"), found)
        if found
        else None
    )


def holders(conversation: str) -> list[tuple[int, int]]:
    """Return (pid, start) of every Gemini that was started with a conversation's id."""
    found = {pid for pid in process.pids() if _launched(pid) == conversation}
    outer = [pid for pid in sorted(found) if process.parent_of(pid) not in found]
    return [(pid, start) for pid in outer if (start := process.start_of(pid)) is not None]


def _launched(pid: int) -> str | None:
    """Return the id that a Gemini was given: `node [OPTIONS] /path/gemini … --resume ID …`."""
    words = process.command_line(pid) or []
    if not any(os.path.basename(word).startswith("gemini") for word in words[:4]):
        return None
    for name, value in pairwise(words):
        if name in (NEW, RESUME) and UUID.match(value):
            return value
    return None
