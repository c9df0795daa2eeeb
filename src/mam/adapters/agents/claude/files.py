"""Reading the files of Claude Code: one transcript per conversation, one state file per process.

A transcript may be huge, so this reads only complete lines at its two ends.
"""

from __future__ import annotations

import os

from mam.adapters.agents import kind_with_conversation_files
from mam.adapters.agents.jsonl import LONGEST_LINE, is_uuid, parse, tail
from mam.adapters.agents.kind_with_conversation_files import HOME
from mam.adapters.agents.open_regular import open_regular_file, read_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG = "CLAUDE_CONFIG_DIR"
_HEAD, _TAIL = 64 * 1024, 256 * 1024
_LONGEST_KEY = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
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
    if config is None or not is_uuid(conversation):
        return None
    return os.path.join(config, "projects", project_key(workspace), f"{conversation}.jsonl")


def find_transcript(conversation: str, stores: Mapping[str, str]) -> str | None:
    """Return the transcript of a conversation of any workspace; None if there is none.

    Raises OSError if the folders cannot be read.
    """
    config = config_folder(stores)
    if config is None or not is_uuid(conversation):
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
            if ending == ".jsonl" and is_uuid(stem) and entry.is_file(follow_symlinks=False):
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
    """Return the files and folders of one conversation, as (store, path below it).

    Claude Code knows a workspace by its real path. A registry of the original system may have another one.
    """
    config, path = config_folder(stores), transcript(conversation, workspace, stores)
    if config is None or path is None:
        return []
    if not os.path.lexists(path):
        path = transcript(conversation, os.path.realpath(workspace), stores) or path
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
