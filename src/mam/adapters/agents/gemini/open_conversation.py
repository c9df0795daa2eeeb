"""Finding out which process is a Gemini CLI, and which conversation it has.

The program starts itself again, as a child with the same arguments; the pane has the outer process. Gemini
writes neither a lock nor a pid, so only the arguments show the conversation.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise

from mam.adapters.agents.gemini import files, record
from mam.adapters.agents.jsonl import is_uuid
from mam.adapters.system import process
from mam.core.activity import UNKNOWN, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NEW, RESUME = "--session-id", "--resume"
# For this many seconds a prompt that only the log has proves that Gemini is working. Later there is other
# evidence, or Gemini has withdrawn the prompt.
_PROMPT_SECONDS = 3.0


def read_state(pid: int, start: int, stores: Mapping[str, str]) -> tuple[Evidence, str | None] | None:
    """Return the present conversation of the Gemini in a pane, by its arguments and the log of its workspace.

    A prompt that only the log has shows that Gemini begins a turn, before any other evidence does.
    """
    launch_id = _id_of_launch(pid) if start and process.start_of(pid) == start else None
    workspace = process.working_directory(pid) if launch_id else None
    folder = files.project_folder(workspace, stores) if workspace else None
    prompt = record.last_prompt(launch_id, folder) if launch_id and folder else None
    if prompt is None or folder is None:
        return None
    conversation = record.conversation_of(prompt, folder)
    if conversation is None and time.time() - prompt.at < _PROMPT_SECONDS:
        return Evidence("state-file", WORKING, prompt.at, detail="a prompt was submitted"), None
    return (
        (Evidence("state-file", UNKNOWN, prompt.at, detail="the log of prompts"), conversation)
        if conversation
        else None
    )


def holders(conversation: str) -> list[tuple[int, int]]:
    """Return (pid, start) of every Gemini that got the id of a conversation at its start."""
    pids = {pid for pid in process.pids() if _id_of_launch(pid) == conversation}
    outer = [pid for pid in sorted(pids) if process.parent_of(pid) not in pids]
    return [(pid, start) for pid in outer if (start := process.start_of(pid)) is not None]


def _id_of_launch(pid: int) -> str | None:
    """Return the id in the arguments of a Gemini: `node [OPTIONS] /path/gemini … --resume ID …`."""
    argv = process.command_line(pid) or []
    if not any(os.path.basename(argument).startswith("gemini") for argument in argv[:4]):
        return None
    for name, value in pairwise(argv):
        if name in (NEW, RESUME) and is_uuid(value):
            return value
    return None
