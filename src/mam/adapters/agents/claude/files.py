"""Reading the files of Claude Code: one transcript per conversation, one state file per process.

A transcript may be huge, so this reads only complete lines at its two ends.
"""

from __future__ import annotations

import os

from mam.adapters.agents import kind_with_conversation_files
from mam.adapters.agents.jsonl import LONGEST_LINE, UUID, epoch, lines_since, parse, seconds, tail
from mam.adapters.agents.kind_with_conversation_files import HOME
from mam.adapters.agents.open_regular import open_regular_file, read_start
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
# Folders of the configuration in which a conversation has another entry, beside its transcript.
_BESIDE = ("file-history", "session-env", "tasks", "todos", "debug")


def config_folder(stores: Mapping[str, str]) -> str | None:
    """Return the folder of the configuration of a launch; None if the row does not name it."""
    return kind_with_conversation_files.config_folder(stores, CONFIG, ".claude")


def project_key(cwd: str) -> str:
    """Return the name of the folder that holds the transcripts of a directory.

    Claude Code replaces each UTF-16 unit that is no ASCII letter or digit with `-`. It cuts a long name and
    appends a hash.
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
    """Return the path that the transcript of a conversation of this workspace has or would have."""
    config = config_folder(stores)
    if config is None or not UUID.match(conversation):
        return None
    return os.path.join(config, "projects", project_key(workspace), f"{conversation}.jsonl")


def find_transcript(conversation: str, stores: Mapping[str, str]) -> str | None:
    """Return the transcript of a conversation of any workspace; None if there is none.

    Raises OSError if the folders cannot be read.
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

    Directories such as `a.b` and `a_b` share a folder, so this reads the directory from each transcript.
    """
    config = config_folder(stores)
    folder = os.path.join(config or "", "projects", project_key(workspace))
    transcript_files = []
    try:
        for entry in os.scandir(folder) if config else ():
            stem, ending = os.path.splitext(entry.name)
            if ending == ".jsonl" and UUID.match(stem) and entry.is_file(follow_symlinks=False):
                transcript_files.append((entry.stat().st_mtime, stem, entry.path))
    except OSError:
        return []
    return [
        stem for _, stem, path in sorted(transcript_files, reverse=True) if _directory_of(path) == workspace
    ]


def _directory_of(path: str) -> str | None:
    for line in read_start(path, _HEAD).split(b"\n")[:-1]:
        cwd = parse(line).get("cwd")
        if isinstance(cwd, str):
            return cwd
    return None


def has_history(path: str) -> bool | None:
    """Tell whether a transcript holds any message to resume; after /clear the new transcript has none.

    Returns None if the file is too large to read and neither of its ends has a message. Raises OSError.
    """
    remaining = LONGEST_LINE
    with open_regular_file(path) as file:
        while line := file.readline(remaining):
            if b'"user"' in line and parse(line).get("type") == "user":
                return True
            remaining -= len(line)
        is_whole = remaining > 0 or not file.read(1)
    if is_whole:
        return False
    lines, _ = tail(path, _TAIL)
    return any(parse(line).get("type") in ("user", "assistant") for line in lines) or None


def paths_of(conversation: str, workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the files and folders of one conversation, as (store, path below it)."""
    config, path = config_folder(stores), transcript(conversation, workspace, stores)
    if config is None or path is None:
        return []
    store = stores.get(CONFIG) or stores[HOME]
    project = os.path.dirname(path)
    paths = [path, os.path.join(project, conversation)]
    for name in _BESIDE:
        try:
            entries = os.listdir(os.path.join(config, name))
        except OSError:
            continue
        paths += [os.path.join(config, name, entry) for entry in entries if entry.startswith(conversation)]
    return [(store, os.path.relpath(path, store)) for path in paths]


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
    return evidence, conversation if isinstance(conversation, str) and UUID.match(conversation) else None


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
        start = str(data.get("procStart"))
        if data.get("sessionId") == conversation and type(data.get("pid")) is int and start.isdecimal():
            processes.append((data["pid"], int(start)))
    return processes


def _read_state_file(path: str) -> dict[str, Any]:
    return parse(read_start(path, _LARGEST_STATE))


def read_turn(path: str) -> Evidence | None:
    """Return the activity by the last line of a transcript that shows one."""
    try:
        lines, _ = tail(path, _TAIL)
    except OSError:
        return None
    for line in reversed(lines):
        entry = parse(line)
        verdict = None if entry.get("isSidechain") or entry.get("isMeta") else _activity_by(entry)
        at = epoch(entry.get("timestamp")) if verdict else None
        if verdict and at is not None:
            state, reason = verdict
            return Evidence("transcript", state, at, detail=reason)
    return None


def _activity_by(entry: dict[str, Any]) -> tuple[str, str] | None:
    """Return the activity that a line shows, with the reason; None if it shows none."""
    kind = entry.get("type")
    if kind == "system":
        return (IDLE, "the turn ended") if entry.get("subtype") == "turn_duration" else None
    if kind == "user":
        text = next(iter(texts(entry)), "")
        if text.startswith("[Request interrupted by user"):
            return IDLE, "the turn was interrupted"
        # Output of commands is recorded as a user line that begins with a tag.
        return None if text.startswith("<") else (WORKING, "the last line is the user's")
    if kind != "assistant":
        return None
    if entry.get("isApiErrorMessage"):
        return IDLE, "the turn ended in an error"
    message = entry.get("message")
    reason = message.get("stop_reason") if isinstance(message, dict) else None
    if reason in ("end_turn", "stop_sequence", "max_tokens", "refusal"):
        return IDLE, f"the answer ended ({reason})"
    return WORKING, "the answer continues"


def identity(path: str) -> tuple[str | None, str | None]:
    """Return the last colour and the last name of a conversation. Raises OSError."""
    values: dict[str, object] = {}
    for line in tail(path, _TAIL)[0]:
        if b'"agent-color"' in line or b'"agent-name"' in line:
            entry = parse(line)
            values[str(entry.get("type"))] = entry.get("agentColor") or entry.get("agentName")
    colour, name = values.get("agent-color"), values.get("agent-name")
    return str(colour) if colour else None, str(name) if name else None


def prompts(path: str, since: int) -> Iterator[str]:
    """Yield the user's prompts beyond `since` bytes, with those in the queue. Raises OSError."""
    for line in lines_since(path, since):
        if b'"user"' not in line and b'"queue-operation"' not in line:
            continue
        entry = parse(line)
        if entry.get("type") == "user" and not entry.get("isMeta"):
            yield from texts(entry)
        elif entry.get("type") == "queue-operation" and isinstance(entry.get("content"), str):
            yield entry["content"]


def texts(entry: dict[str, Any]) -> Iterator[str]:
    """Yield the texts of a line."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield part["text"]
