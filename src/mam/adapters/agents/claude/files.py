"""The files that Claude Code keeps: one transcript per conversation, one state file per process.

A transcript may be huge, so only its two ends are read, and only whole lines of them.
"""

from __future__ import annotations

import os

from mam.adapters.agents import conversation_file
from mam.adapters.agents.conversation_file import HOME
from mam.adapters.agents.jsonl import LONGEST_LINE, UUID, epoch, lines_since, parse, seconds, tail
from mam.adapters.agents.open_regular import open_plain, read_start
from mam.core.activity import IDLE, WAITING, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

CONFIG = "CLAUDE_CONFIG_DIR"
_HEAD, _TAIL = 64 * 1024, 256 * 1024
_LARGEST_STATE = 64 * 1024
_LONGEST_KEY = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_STATUSES = {"idle": IDLE, "busy": WORKING, "waiting": WAITING}
_WAITING_FOR = {"permission prompt": "permission", "input needed": "question", "dialog open": "menu"}
# Folders of the configuration in which a conversation has an entry of its own, beside its transcript.
_BESIDE = ("file-history", "session-env", "tasks", "todos", "debug")


def config_folder(stores: Mapping[str, str]) -> str | None:
    """Return the folder of the launch's configuration, or None if the row does not say."""
    return conversation_file.config_folder(stores, CONFIG, ".claude")


def project_key(cwd: str) -> str:
    """Return the name of the folder for a directory's transcripts.

    What is no ASCII letter or digit becomes `-`, one per UTF-16 unit; a long name is cut and gets a hash.
    """
    raw = cwd.encode("utf-16-le", "surrogatepass")
    units = [raw[at] | raw[at + 1] << 8 for at in range(0, len(raw), 2)]
    key = "".join(chr(unit) if unit < 128 and chr(unit).isalnum() else "-" for unit in units)
    if len(key) <= _LONGEST_KEY:
        return key
    number = 0
    for unit in units:
        number = (number * 31 + unit) & 0xFFFFFFFF
    return f"{key[:_LONGEST_KEY]}-{_base36(abs(number - (number >> 31 << 32)))}"


def _base36(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 36)
        text = _DIGITS[digit] + text
    return text or "0"


def transcript(conversation: str, workspace: str, stores: Mapping[str, str]) -> str | None:
    """Return where the transcript of a conversation of a workspace lies or would lie."""
    config = config_folder(stores)
    if config is None or not UUID.match(conversation):
        return None
    return os.path.join(config, "projects", project_key(workspace), f"{conversation}.jsonl")


def find_transcript(conversation: str, stores: Mapping[str, str]) -> str | None:
    """Return the transcript of a conversation of whatever workspace; None if there is none.

    Raises OSError where nobody can say.
    """
    config = config_folder(stores)
    if config is None or not UUID.match(conversation):
        return None
    projects = os.path.join(config, "projects")
    try:
        folders = os.listdir(projects)
    except FileNotFoundError:
        return None
    for folder in folders:
        path = os.path.join(projects, folder, f"{conversation}.jsonl")
        if os.path.isfile(path):
            return path
    return None


def transcripts(workspace: str, stores: Mapping[str, str]) -> list[str]:
    """Return the conversations that began in a workspace, newest first.

    `a.b` and `a_b` share a folder, so each transcript is asked for its directory.
    """
    config = config_folder(stores)
    folder = os.path.join(config or "", "projects", project_key(workspace))
    found = []
    try:
        for entry in os.scandir(folder) if config else ():
            stem, ending = os.path.splitext(entry.name)
            if ending == ".jsonl" and UUID.match(stem) and entry.is_file(follow_symlinks=False):
                found.append((entry.stat().st_mtime, stem, entry.path))
    except OSError:
        return []
    return [stem for _, stem, path in sorted(found, reverse=True) if _began_in(path) == workspace]


def _began_in(path: str) -> str | None:
    for line in read_start(path, _HEAD).split(b"\n")[:-1]:
        cwd = parse(line).get("cwd")
        if isinstance(cwd, str):
            return cwd
    return None


def has_history(path: str) -> bool | None:
    """Tell whether a transcript holds anything to go on from; after /clear a new one has nothing yet.

    None where it is too large to be read, and neither end of it says so. Raises OSError.
    """
    left = LONGEST_LINE
    with open_plain(path) as file:
        while line := file.readline(left):
            if b'"user"' in line and parse(line).get("type") == "user":
                return True
            left -= len(line)
        is_whole = left > 0 or not file.read(1)
    if is_whole:
        return False
    lines, _ = tail(path, _TAIL)
    return any(parse(line).get("type") in ("user", "assistant") for line in lines) or None


def paths_of(conversation: str, workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what one conversation has on disk, as (folder, path below it)."""
    config, path = config_folder(stores), transcript(conversation, workspace, stores)
    if config is None or path is None:
        return []
    store = stores.get(CONFIG) or stores[HOME]
    project = os.path.dirname(path)
    found = [path, os.path.join(project, conversation)]
    for name in _BESIDE:
        try:
            entries = os.listdir(os.path.join(config, name))
        except OSError:
            continue
        found += [os.path.join(config, name, entry) for entry in entries if entry.startswith(conversation)]
    return [(store, os.path.relpath(one, store)) for one in found]


def read_state(pid: int, start: int, stores: Mapping[str, str]) -> tuple[Evidence, str | None] | None:
    """Return what the state file of exactly this process says, and its conversation."""
    config = config_folder(stores)
    data = _state(os.path.join(config, "sessions", f"{pid}.json")) if config else {}
    status = str(data.get("status"))
    if data.get("pid") != pid or str(data.get("procStart")) != str(start) or status not in _STATUSES:
        return None
    at = seconds(data.get("statusUpdatedAt")) or seconds(data.get("updatedAt")) or 0.0
    why = str(data.get("waitingFor") or "")
    waiting_for = (_WAITING_FOR.get(why) or "dialog") if status == "waiting" else None
    said = Evidence(
        "state-file",
        _STATUSES[status],
        at,
        waiting_for,
        f"{status} {why}".strip(),
    )
    conversation = data.get("sessionId")
    return said, conversation if isinstance(conversation, str) and UUID.match(conversation) else None


def holders(conversation: str, stores: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return (pid, start) of the processes whose state file names a conversation, dead ones too."""
    config = config_folder(stores)
    folder = os.path.join(config or "", "sessions")
    try:
        names = os.listdir(folder) if config else []
    except OSError:
        return []
    found = []
    for name in names:
        data = _state(os.path.join(folder, name)) if name.endswith(".json") else {}
        start = str(data.get("procStart"))
        if data.get("sessionId") == conversation and type(data.get("pid")) is int and start.isdecimal():
            found.append((data["pid"], int(start)))
    return found


def _state(path: str) -> dict[str, Any]:
    return parse(read_start(path, _LARGEST_STATE))


def read_turn(path: str) -> Evidence | None:
    """Return what the last telling line of a transcript says about the turn."""
    try:
        lines, _ = tail(path, _TAIL)
    except OSError:
        return None
    for line in reversed(lines):
        entry = parse(line)
        told = None if entry.get("isSidechain") or entry.get("isMeta") else _tell(entry)
        at = epoch(entry.get("timestamp")) if told else None
        if told and at is not None:
            return Evidence("transcript", told[0], at, detail=told[1])
    return None


def _tell(entry: dict[str, Any]) -> tuple[str, str] | None:
    kind = entry.get("type")
    if kind == "system":
        return (IDLE, "the turn ended") if entry.get("subtype") == "turn_duration" else None
    if kind == "user":
        said = next(iter(texts(entry)), "")
        if said.startswith("[Request interrupted by user"):
            return IDLE, "the turn was interrupted"
        return None if said.startswith("<") else (WORKING, "last line is of the user")
    if kind != "assistant":
        return None
    if entry.get("isApiErrorMessage"):
        return IDLE, "the turn ended in an error"
    message = entry.get("message")
    reason = message.get("stop_reason") if isinstance(message, dict) else None
    if reason in ("end_turn", "stop_sequence", "max_tokens", "refusal"):
        return IDLE, f"the answer ended ({reason})"
    return WORKING, "the answer goes on"


def identity(path: str) -> tuple[str | None, str | None]:
    """Return the colour and the name that a conversation was given last. Raises OSError."""
    found: dict[str, object] = {}
    for line in tail(path, _TAIL)[0]:
        if b'"agent-color"' in line or b'"agent-name"' in line:
            entry = parse(line)
            found[str(entry.get("type"))] = entry.get("agentColor") or entry.get("agentName")
    colour, name = found.get("agent-color"), found.get("agent-name")
    return str(colour) if colour else None, str(name) if name else None


def prompts(path: str, since: int) -> Iterator[str]:
    """Yield what the user said in the whole lines beyond `since` bytes, queued prompts too."""
    for line in lines_since(path, since):
        if b'"user"' not in line and b'"queue-operation"' not in line:
            continue
        entry = parse(line)
        if entry.get("type") == "user" and not entry.get("isMeta"):
            yield from texts(entry)
        elif entry.get("type") == "queue-operation" and isinstance(entry.get("content"), str):
            yield entry["content"]


def texts(entry: dict[str, Any]) -> Iterator[str]:
    """Yield what a line says in words."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
