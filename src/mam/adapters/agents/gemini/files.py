"""Reading the files of Gemini CLI: one folder per workspace, with one chat file per conversation.

A chat file is the transcript. Its name has the minute in which the conversation began and the first eight
digits of the id. A resumed conversation continues in its file, and Gemini also leaves a new, empty file with
the same id.
"""

from __future__ import annotations

import os
import re

from mam.adapters.agents.jsonl import is_uuid, parse, tail
from mam.adapters.agents.kind_with_conversation_files import HOME
from mam.adapters.agents.open_regular import read_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

CONFIG = "GEMINI_CLI_HOME"
_CHAT = re.compile(r"session-.*-([0-9a-f]{8})\.jsonl\Z")
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
_HEAD, TAIL = 64 * 1024, 256 * 1024
_LARGEST_MAP = 4 * 1024 * 1024
# Gemini ignores such messages when it resumes a conversation, and a chat with no others has no history.
_IGNORED = ("/", "?", "<session_context>", "<hook_context>")


def store(stores: Mapping[str, str]) -> str | None:
    """Return the folder that holds `.gemini`; None if the row does not name it."""
    return stores.get(CONFIG) or stores.get(HOME) or None


def project_folder(workspace: str, stores: Mapping[str, str]) -> str | None:
    """Return the folder with the chats and logs of a workspace; None if it has none yet."""
    base = store(stores)
    if base is None:
        return None
    slugs = parse(read_start(os.path.join(base, ".gemini", "projects.json"), _LARGEST_MAP)).get("projects")
    slug = slugs.get(workspace) if isinstance(slugs, dict) else None
    folders = os.path.join(base, ".gemini", "tmp")
    if isinstance(slug, str) and _SLUG.match(slug):
        return os.path.join(folders, slug)
    return next((folder for folder in _entries(folders) if _workspace_of(folder) == workspace), None)


def _entries(base: str) -> list[str]:
    try:
        return sorted(os.path.join(base, name) for name in os.listdir(base))
    except OSError:
        return []


def _workspace_of(folder: str) -> str:
    return read_start(os.path.join(folder, ".project_root"), _HEAD).decode("utf-8", "replace").strip()


def chats(folder: str, conversation: str = "") -> list[str]:
    """Return the chat files of a project folder, the last changed first; only those of one id if given.

    Raises OSError if the folder cannot be read.
    """
    files = []
    try:
        with os.scandir(os.path.join(folder, "chats")) as entries:
            for entry in entries:
                name = _CHAT.match(entry.name)
                matches = name and conversation.startswith(name[1] if conversation else "")
                if matches and entry.is_file(follow_symlinks=False):
                    files.append((entry.stat().st_mtime_ns, entry.path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    paths = [path for _, path in sorted(files, reverse=True)]
    return [path for path in paths if not conversation or owner_of(path) in (conversation, None)]


def owner_of(path: str) -> str | None:
    """Return the conversation that the first line of a chat file names; None if it names none.

    A file lacks that line if another Gemini deleted it while its own process was writing to it. Then only the
    name of the new file shows the conversation, and no Gemini can resume it.
    """
    head = parse(read_start(path, _HEAD).partition(b"\n")[0])
    ident = head.get("sessionId")
    return ident if isinstance(ident, str) and is_uuid(ident) and head.get("kind") != "subagent" else None


def chat_of(conversation: str, folder: str) -> str | None:
    """Return the chat file with the history of a conversation, or else any of its files; None without any."""
    paths = chats(folder, conversation) if is_uuid(conversation) else []
    paths.sort(key=lambda path: owner_of(path) is None)
    return next((path for path in paths if has_history(path)), paths[0] if paths else None)


def find_chat(conversation: str, stores: Mapping[str, str]) -> str | None:
    """Return the chat file of a conversation of any workspace; None if there is none. Raises OSError."""
    base = store(stores)
    for folder in _entries(os.path.join(base, ".gemini", "tmp")) if base else ():
        path = chat_of(conversation, folder)
        if path:
            return path
    return None


def conversations(workspace: str, stores: Mapping[str, str]) -> list[str]:
    """Return the conversations of a workspace that have a history, newest first."""
    folder = project_folder(workspace, stores)
    owners: list[str] = []
    try:
        for path in chats(folder) if folder else ():
            owner = owner_of(path)
            if owner and owner not in owners and has_history(path):
                owners.append(owner)
    except OSError:
        return []
    return owners


def has_history(path: str) -> bool:
    """Tell whether a chat file has any message to resume. Raises OSError.

    Gemini withdraws an interrupted or failed turn: it writes a list of the remaining messages, which replaces
    all entries before it.
    """
    lines, is_whole = tail(path, TAIL)
    for line in reversed(lines):
        entry = parse(line)
        if is_of_conversation(entry):
            return True
        remaining = messages_in(entry)
        if remaining is not None:
            return any(is_of_conversation(message) for message in remaining)
    return not is_whole


def is_of_conversation(message: Mapping[str, Any]) -> bool:
    """Tell whether a message belongs to the conversation; the program also records its own messages."""
    text = "".join(texts(message)).strip()
    if message.get("type") == "user":
        return bool(text or message.get("content")) and not text.startswith(_IGNORED)
    return message.get("type") == "gemini" and bool(
        text or message.get("toolCalls") or message.get("thoughts")
    )


def messages_in(entry: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the messages of an entry that replaces all messages before it; None for other entries."""
    change = entry.get("$set")
    messages = change.get("messages") if isinstance(change, dict) else None
    return [item for item in messages if isinstance(item, dict)] if isinstance(messages, list) else None


def texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a message, without thoughts, tool calls and results."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and isinstance(part.get("text"), str) and not part.get("thought"):
            yield part["text"]


def paths_of(conversation: str, workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the files and folders of one conversation, as (store, path below it). Raises OSError."""
    base, folder = store(stores), project_folder(workspace, stores)
    if base is None or folder is None or not is_uuid(conversation):
        return []
    subagents = os.path.join(folder, "chats", conversation)
    # Take only names that are ids: any other name may be that of a folder which conversations share.
    names = [os.path.splitext(os.path.basename(path))[0] for path in _entries(subagents)]
    ids = [conversation, *(name for name in names if is_uuid(name))]
    paths = [*chats(folder, conversation), subagents]
    for ident in ids:
        paths += [
            os.path.join(folder, ident),
            os.path.join(folder, "tool-outputs", f"session-{ident}"),
            os.path.join(folder, "logs", f"session-{ident}.jsonl"),
        ]
    return [(base, os.path.relpath(path, base)) for path in paths if os.path.lexists(path)]


def leftovers(workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return empty chat files whose id has another file with a history, as (store, path below it).

    If an id has an empty file, the next Gemini that starts in the workspace with another id deletes all files
    of that id, also the one with the history.
    """
    base, folder = store(stores), project_folder(workspace, stores)
    paths_by_owner: dict[str, list[str]] = {}
    if base is None or folder is None:
        return []
    for path in chats(folder):
        paths_by_owner.setdefault(owner_of(path) or "", []).append(path)
    leftover_paths = []
    for owner, paths in paths_by_owner.items():
        empty = [path for path in paths if not has_history(path)]
        if owner and 0 < len(empty) < len(paths):
            leftover_paths += empty
    return [(base, os.path.relpath(path, base)) for path in leftover_paths]
