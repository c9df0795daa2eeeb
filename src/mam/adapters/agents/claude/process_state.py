"""The state files of Claude Code: each running process records what it does and in which conversation."""

from __future__ import annotations

import os

from mam.adapters.agents.claude.files import config_folder
from mam.adapters.agents.jsonl import is_uuid, parse, seconds
from mam.adapters.agents.open_regular import read_start
from mam.core.activity import IDLE, WAITING, WORKING, Evidence
from mam.core.whole_number import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LARGEST_STATE = 64 * 1024
_STATUSES = {"idle": IDLE, "busy": WORKING, "waiting": WAITING}
_WAITING_FOR = {"permission prompt": "permission", "input needed": "question", "dialog open": "menu"}


def read_state(pid: int, start: int, stores: Mapping[str, str]) -> tuple[Evidence, str | None] | None:
    """Return the activity and the conversation that the state file of exactly this process names."""
    config = config_folder(stores)
    data = _read_state_file(os.path.join(config, "sessions", f"{pid}.json")) if config else {}
    status = str(data.get("status"))
    if data.get("pid") != pid or str(data.get("procStart")) != str(start) or status not in _STATUSES:
        return None
    at = seconds(data.get("statusUpdatedAt")) or seconds(data.get("updatedAt")) or 0.0
    why = str(data.get("waitingFor") or "")
    waiting_for = (_WAITING_FOR.get(why) or "dialog") if status == "waiting" else None
    evidence = Evidence(
        "state-file",
        _STATUSES[status],
        at,
        waiting_for,
        f"{status} {why}".strip(),
    )
    conversation = data.get("sessionId")
    return evidence, conversation if isinstance(conversation, str) and is_uuid(conversation) else None


def holders(conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return (pid, start) of the processes whose state file names a conversation; some may be dead."""
    config = config_folder(stores)
    folder = os.path.join(config or "", "sessions")
    try:
        names = os.listdir(folder) if config else []
    except OSError:
        return []
    processes = []
    for name in names:
        data = _read_state_file(os.path.join(folder, name)) if name.endswith(".json") else {}
        start = whole_number(str(data.get("procStart")))
        if data.get("sessionId") == conversation and type(data.get("pid")) is int and start is not None:
            processes.append((data["pid"], start))
    return processes


def _read_state_file(path: str) -> dict[str, Any]:
    return parse(read_start(path, _LARGEST_STATE))
