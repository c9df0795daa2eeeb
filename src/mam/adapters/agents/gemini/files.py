"""The files that Gemini CLI keeps: a folder per directory with a chat file per conversation.

A chat file is named by the minute in which it began and the first eight digits of the id. A resumed
conversation goes on in its file, and beside it a new, empty one of the same id is left.
"""

from __future__ import annotations

import os
import re

from mam.adapters.agents.conversation_file import HOME
from mam.adapters.agents.jsonl import UUID, parse, tail
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
# The program leaves these out when it takes a conversation up, and a chat of nothing else is none.
_IGNORED = ("/", "?", "<session_context>", "<hook_context>")


def store(stores: Mapping[str, str]) -> str | None:
    """Return the folder in which `.gemini` lies, or None if the row does not say."""
    return stores.get(CONFIG) or stores.get(HOME) or None


def project_folder(workspace: str, stores: Mapping[str, str]) -> str | None:
    """Return the folder of a directory's chats and logs; None if it has none yet."""
    base = store(stores)
    if base is None:
        return None
    known = parse(read_start(os.path.join(base, ".gemini", "projects.json"), _LARGEST_MAP)).get("projects")
    slug = known.get(workspace) if isinstance(known, dict) else None
    folders = os.path.join(base, ".gemini", "tmp")
    if isinstance(slug, str) and _SLUG.match(slug):
        return os.path.join(folders, slug)
    return next((one for one in _folders(folders) if _owner(one) == workspace), None)


def _folders(base: str) -> list[str]:
    try:
        return sorted(os.path.join(base, name) for name in os.listdir(base))
    except OSError:
        return []


def _owner(folder: str) -> str:
    return read_start(os.path.join(folder, ".project_root"), _HEAD).decode("utf-8", "replace").strip()


def chats(folder: str, conversation: str = "") -> list[str]:
    """Return the chat files of a project's folder, the last changed first; those of one id if it is given.

    Raises OSError where nobody can say.
    """
    found = []
    try:
        with os.scandir(os.path.join(folder, "chats")) as entries:
            for entry in entries:
                name = _CHAT.match(entry.name)
                is_wanted = name and conversation.startswith(name[1] if conversation else "")
                if is_wanted and entry.is_file(follow_symlinks=False):
                    found.append((entry.stat().st_mtime_ns, entry.path))
    except (FileNotFoundError, NotADirectoryError):
        return []
    paths = [path for _, path in sorted(found, reverse=True)]
    return [path for path in paths if not conversation or owner_of(path) in (conversation, None)]


def owner_of(path: str) -> str | None:
    """Return the conversation that a chat file names in its first line.

    One without that line is of a process whose file was deleted under it: its name alone tells, and no
    Gemini can take it up.
    """
    head = parse(read_start(path, _HEAD).partition(b"\n")[0])
    found = head.get("sessionId")
    return found if isinstance(found, str) and UUID.match(found) and head.get("kind") != "subagent" else None


def chat_of(conversation: str, folder: str) -> str | None:
    """Return the chat file with a conversation's history, else any of it; None if there is none."""
    found = chats(folder, conversation) if UUID.match(conversation) else []
    found.sort(key=lambda path: owner_of(path) is None)
    return next((path for path in found if has_history(path)), found[0] if found else None)


def find_chat(conversation: str, stores: Mapping[str, str]) -> str | None:
    """Return the chat file of a conversation of whatever directory."""
    base = store(stores)
    for folder in _folders(os.path.join(base, ".gemini", "tmp")) if base else ():
        found = chat_of(conversation, folder)
        if found:
            return found
    return None


def conversations(workspace: str, stores: Mapping[str, str]) -> list[str]:
    """Return the conversations of a directory that have a history, newest first."""
    folder = project_folder(workspace, stores)
    found: list[str] = []
    try:
        for path in chats(folder) if folder else ():
            owner = owner_of(path)
            if owner and owner not in found and has_history(path):
                found.append(owner)
    except OSError:
        return []
    return found


def has_history(path: str) -> bool:
    """Tell whether there is anything to take up. Raises OSError where nobody can say.

    An interrupted or failed turn is taken back: a list of the messages that are left replaces all before it.
    """
    lines, is_whole = tail(path, TAIL)
    for line in reversed(lines):
        entry = parse(line)
        if is_said(entry):
            return True
        left = messages_in(entry)
        if left is not None:
            return any(is_said(one) for one in left)
    return not is_whole


def is_said(message: Mapping[str, Any]) -> bool:
    """Tell whether a message is one of a conversation, and not only of the program's own making."""
    words = "".join(texts(message)).strip()
    if message.get("type") == "user":
        return bool(words or message.get("content")) and not words.startswith(_IGNORED)
    return message.get("type") == "gemini" and bool(
        words or message.get("toolCalls") or message.get("thoughts")
    )


def messages_in(entry: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the messages that an entry puts in the place of all before it, if it is such a one."""
    change = entry.get("$set")
    found = change.get("messages") if isinstance(change, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else None


def texts(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of a message, without thoughts, calls and results."""
    content = message.get("content")
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict) and isinstance(part.get("text"), str) and not part.get("thought"):
            yield part["text"]


def paths_of(conversation: str, workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return what one conversation has on disk, as (store, path below it). Raises OSError."""
    base, folder = store(stores), project_folder(workspace, stores)
    if base is None or folder is None or not UUID.match(conversation):
        return []
    helpers = os.path.join(folder, "chats", conversation)
    # Only what looks like an id: any other name may be that of a folder which all share.
    names = [os.path.splitext(os.path.basename(one))[0] for one in _folders(helpers)]
    ids = [conversation, *(name for name in names if UUID.match(name))]
    found = [*chats(folder, conversation), helpers]
    for one in ids:
        found += [
            os.path.join(folder, one),
            os.path.join(folder, "tool-outputs", f"session-{one}"),
            os.path.join(folder, "logs", f"session-{one}.jsonl"),
        ]
    return [(base, os.path.relpath(one, base)) for one in found if os.path.lexists(one)]


def leftovers(workspace: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the empty chat files beside one with a history of the same id, as (store, path below it).

    The next Gemini that starts in the directory with another id deletes all files of an id that has one.
    """
    base, folder = store(stores), project_folder(workspace, stores)
    found: dict[str, list[str]] = {}
    if base is None or folder is None:
        return []
    for path in chats(folder):
        found.setdefault(owner_of(path) or "", []).append(path)
    empty = []
    for owner, paths in found.items():
        bare = [path for path in paths if not has_history(path)]
        if owner and 0 < len(bare) < len(paths):
            empty += bare
    return [(base, os.path.relpath(path, base)) for path in empty]
