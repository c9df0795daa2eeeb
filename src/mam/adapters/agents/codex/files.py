"""Reading the files of Codex: one rollout per conversation, and a lock while a process has it open.

A rollout is the transcript of Codex. It may be huge, so this reads only complete lines at its two ends. A
fork is not a copy: its rollout names the conversation that it continues, and is useless without that rollout.
"""

from __future__ import annotations

import json
import os
import re
import time

from mam.adapters.agents import kind_with_conversation_files
from mam.adapters.agents.codex import limit_reset_time
from mam.adapters.agents.jsonl import epoch, is_uuid, lines_since, parse, tail
from mam.adapters.agents.kind_with_conversation_files import HOME
from mam.adapters.agents.open_regular import read_start
from mam.core.activity import IDLE, WAITING, WORKING, Evidence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

CONFIG = "CODEX_HOME"
_ROLLOUT = re.compile(r"(?:\A|/)rollout-[^/]+-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl\Z")
# The first line has the facts of the conversation before its long instructions, so this much is enough.
_HEAD, _TAIL = 4 * 1024, 256 * 1024
_LARGEST_CONFIG = 1024 * 1024
_CWD = re.compile(rb'"cwd":("(?:[^"\\]|\\.)*")')
_FORK = re.compile(rb'"forked_from_id":"([0-9a-f-]{36})"')
_THREAD = re.compile(rb'"thread_source":"([a-z_]+)"')
_NOTIFY = re.compile(r"^\s*notify\s*=", re.MULTILINE)
_TURN_EVENTS = (b'"task_started"', b'"task_complete"', b'"turn_aborted"')
_ROLES = {"UserMessage": "user", "AgentMessage": "assistant"}
_LIMIT_ERRORS = ("usage_limit_exceeded",)


def config_folder(stores: Mapping[str, str]) -> str | None:
    """Return the folder of the configuration of a launch; None if the row does not name it."""
    return kind_with_conversation_files.config_folder(stores, CONFIG, ".codex")


def has_notify(stores: Mapping[str, str]) -> bool:
    """Tell whether the user has configured a notify program; a launch can have only one."""
    path = os.path.join(config_folder(stores) or "", "config.toml")
    return bool(_NOTIFY.search(read_start(path, _LARGEST_CONFIG).decode("utf-8", "replace")))


def lock_path(conversation: str, stores: Mapping[str, str]) -> str | None:
    """Return the file that a process locks while it has a conversation open."""
    folder = locks_folder(stores)
    return os.path.join(folder, f"{conversation}.lock") if folder and is_uuid(conversation) else None


def locks_folder(stores: Mapping[str, str]) -> str | None:
    """Return the folder of the locks."""
    config = config_folder(stores)
    return os.path.join(config, "thread-writer-locks") if config else None


def locked_since(conversation: str, stores: Mapping[str, str]) -> float | None:
    """Return since when a process has a conversation open; None if there is no lock file."""
    try:
        return os.path.getmtime(lock_path(conversation, stores) or "")
    except OSError:
        return None


def rollouts(stores: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (conversation, path) of every rollout, the folder of the newest day first.

    Raises OSError if a folder cannot be read.
    """
    config = config_folder(stores)
    if config is None:
        return
    days = [os.path.join(config, "sessions")]
    for _ in ("year", "month", "day"):
        days = [os.path.join(folder, name) for folder in days for name in _names(folder)]
    yield from _rollouts_in(days)


def _rollouts_in(days: list[str]) -> Iterator[tuple[str, str]]:
    for day in days:
        for name in _names(day):
            conversation = conversation_of(name)
            if conversation:
                yield conversation, os.path.join(day, name)


def conversation_of(path: str) -> str | None:
    """Return the conversation of a rollout; None if the path is not that of a rollout."""
    match = _ROLLOUT.search(path)
    return match[1] if match else None


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder), reverse=True)
    except (FileNotFoundError, NotADirectoryError):
        return []


def find_rollout(conversation: str, stores: Mapping[str, str]) -> str | None:
    """Return the rollout of a conversation; None if there is none. Raises OSError."""
    config = config_folder(stores)
    if config is None or not is_uuid(conversation):
        return None
    days = _days_of(conversation)
    folders = [os.path.join(config, "sessions", day) for day in days]
    candidates = _rollouts_in(folders) if days else rollouts(stores)
    return next((path for ident, path in candidates if ident == conversation), None)


def _days_of(conversation: str) -> list[str]:
    """Return the folders of the day that a version 7 UUID names, for any time zone; none for other ids."""
    if conversation[14] != "7":
        return []
    from datetime import UTC, datetime, timedelta

    try:
        created = datetime.fromtimestamp(int(conversation[:8] + conversation[9:13], 16) / 1000, UTC)
        return [(created + timedelta(days=shift)).strftime("%Y/%m/%d") for shift in (0, -1, 1)]
    except (ValueError, OverflowError, OSError):
        return []


def conversations_in(workspace: str, stores: Mapping[str, str]) -> list[str]:
    """Return the conversations of a person that began in a workspace, the last used first."""
    used = []
    try:
        for conversation, path in rollouts(stores):
            head = _head(path)
            cwd = _CWD.search(head)
            if cwd and _parse_string(cwd[1]) == workspace and is_of_person(head):
                used.append((os.path.getmtime(path), conversation))
    except OSError:
        return []
    return [conversation for _, conversation in sorted(used, reverse=True)]


def forks_of(conversation: str, stores: Mapping[str, str]) -> list[str]:
    """Return the forks of a conversation, which cannot be read without it. Raises OSError."""
    forks = []
    for other, path in rollouts(stores):
        origin = _FORK.search(_head(path))
        if origin and origin[1].decode() == conversation:
            forks.append(other)
    return forks


def is_of_person(head: bytes) -> bool:
    """Tell whether the first line of a rollout names a conversation with a person, not with a subagent."""
    thread = _THREAD.search(head)
    return thread is None or thread[1] == b"user"


def _head(path: str) -> bytes:
    return read_start(path, _HEAD).partition(b"\n")[0]


def is_subagent(path: str | None) -> bool:
    """Tell whether a rollout is that of a subagent."""
    return path is not None and not is_of_person(_head(path))


def paths_of(conversation: str, stores: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the files of one conversation, as (store, path below it). Raises OSError."""
    config = config_folder(stores)
    path = find_rollout(conversation, stores)
    if config is None or not is_uuid(conversation):
        return []
    snapshots = os.path.join(config, "shell_snapshots")
    paths = [path] if path else []
    paths += [os.path.join(snapshots, name) for name in _names(snapshots) if name.startswith(conversation)]
    store = stores.get(CONFIG) or stores[HOME]
    return [(store, os.path.relpath(path, store)) for path in paths]


def read_turn(path: str, opened: float | None) -> Evidence | None:
    """Return the activity by the end of a rollout.

    `opened` is the time at which a process opened the rollout; None if no process has it open. A turn that
    began before that time has ended, even if the rollout does not record its end.
    """
    try:
        lines, _ = tail(path, _TAIL)
    except OSError:
        return None
    evidence = _last_evidence(lines, _TURN_EVENTS, _by_turn_event)
    evidence = evidence or _last_evidence(lines, (b'"response_item"',), _by_response_item)
    if evidence is None or evidence.state != WORKING:
        return evidence
    if opened is None:
        return None
    if evidence.at < opened:
        return Evidence(
            "transcript", IDLE, opened, detail="the process of the last turn ended before the turn"
        )
    return evidence


def _last_evidence(
    lines: list[bytes], signs: tuple[bytes, ...], read: Callable[[dict[str, Any]], Evidence | None]
) -> Evidence | None:
    for line in reversed(lines):
        if any(sign in line for sign in signs) and (evidence := read(parse(line))):
            return evidence
    return None


def _by_turn_event(entry: dict[str, Any]) -> Evidence | None:
    payload, at = entry.get("payload"), epoch(entry.get("timestamp"))
    if not isinstance(payload, dict) or at is None:
        return None
    kind = payload.get("type") if entry.get("type") == "event_msg" else None
    if kind == "task_started":
        return Evidence("transcript", WORKING, at, detail="the turn began")
    if kind == "turn_aborted":
        return Evidence("transcript", IDLE, at, detail="the turn was interrupted")
    return _by_turn_end(payload, at) if kind == "task_complete" else None


def _by_response_item(entry: dict[str, Any]) -> Evidence | None:
    """Return that a turn continues; the beginning of a long turn may lie before the lines that mam reads."""
    at = epoch(entry.get("timestamp")) if entry.get("type") == "response_item" else None
    return Evidence("transcript", WORKING, at, detail="the turn continues") if at is not None else None


def _by_turn_end(payload: dict[str, Any], at: float) -> Evidence:
    error = payload.get("error")
    if not isinstance(error, dict):
        return Evidence("transcript", IDLE, at, detail="the turn ended")
    if error.get("codex_error_info") in _LIMIT_ERRORS:
        message_text = str(error.get("message"))[:300]
        end = limit_reset_time.named_end(message_text)
        if limit_reset_time.is_on(end, time.time(), at):
            return Evidence("transcript", WAITING, at, f"limit, resets {end}", message_text)
        # The input box takes text, and Codex does not record that the limit has ended.
        return Evidence("transcript", IDLE, at, detail=message_text)
    return Evidence("transcript", IDLE, at, detail="the turn ended in an error")


def prompts(path: str, since: int) -> Iterator[str]:
    """Yield the user's prompts beyond `since` bytes. Raises OSError."""
    for line in lines_since(path, since):
        if b'"UserMessage"' in line:
            item = message(parse(line))
            if item and item[0] == "user":
                yield item[1]


def message(entry: dict[str, Any]) -> tuple[str, str] | None:
    """Return the role and the text of a line; None if it is not a message of the conversation."""
    payload = entry.get("payload")
    if not isinstance(payload, dict) or payload.get("type") != "item_completed":
        return None
    item = payload.get("item")
    item = item if isinstance(item, dict) else {}
    role, parts = _ROLES.get(str(item.get("type"))), item.get("content")
    if role is None or not isinstance(parts, list):
        return None
    texts = [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return role, "".join(texts)


def _parse_string(quoted: bytes) -> object:
    try:
        return json.loads(quoted)
    except ValueError:
        return None
