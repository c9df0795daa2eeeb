"""The spool into which the hooks of agents write: one file per event, until mam has taken it in."""

from __future__ import annotations

import os
import stat
import time
from contextlib import suppress

from mam.adapters.system import json_text as json
from mam.core.activity import is_misdated, plausible_time
from mam.core.names import is_session_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST_PID = 10
# A hook needs some milliseconds, and its agent ends it after some seconds.
_ABANDONED_SECONDS = 600.0
LARGEST_PAYLOAD = 4 * 1024 * 1024


class Payload:
    """One event that a hook wrote. Its file is read whenever `data` is used, and its content is not kept."""

    __slots__ = ("at", "flaw", "is_gone", "path", "pid", "session_id", "size")

    def __init__(self, path: str, session_id: str, pid: str, at: float, size: int) -> None:
        self.path = path
        self.session_id = session_id
        self.pid = pid
        self.at = at
        self.size = size
        # Whether the file could not be read: another process may have taken it in.
        self.is_gone = False
        # Why mam could not interpret the content; None if it could, or has not tried.
        self.flaw: str | None = None

    @property
    def is_too_large(self) -> bool:
        """Whether mam refuses the payload without reading it."""
        return self.size > LARGEST_PAYLOAD

    @property
    def data(self) -> dict[str, Any] | None:
        """The content; {} for a broken or too large file, None for an unreadable or removed one."""
        if self.is_too_large:
            return {}
        try:
            with open(self.path, "rb", opener=_open_regular) as file:
                return _parse(file.read(LARGEST_PAYLOAD))
        except OSError:
            return None


def _open_regular(path: str, flags: int) -> int:
    # A name that was a file when it was listed may be a pipe by now; opening that would wait.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def pending(spool: str, now: float = float("inf"), session_id: str | None = None) -> list[Payload]:
    """Return the payloads in the spool, oldest first; with `session_id` those of one session.

    After a clock was set back, a payload may be from the future. It gets a time before all others, because
    they were written since, and must not be hidden by it.
    """
    try:
        start = f"{session_id}." if session_id else ""
        listed = os.listdir(spool)
    except OSError:
        return []
    names = [name for name in listed if name.startswith(start) and _is_payload(name)]
    payloads: list[Payload] = []
    misdated: list[Payload] = []
    for name in names:
        path = os.path.join(spool, name)
        try:
            facts = os.stat(path, follow_symlinks=False)
        except OSError:
            continue
        if stat.S_ISREG(facts.st_mode):
            session_id, _, rest = name.partition(".")
            pid, at = rest.partition(".")[0], facts.st_mtime
            found = misdated if is_misdated(at, now) else payloads
            found.append(Payload(path, session_id, pid, at, facts.st_size))
    payloads.sort(key=_age)
    misdated.sort(key=_age)
    first = min([plausible_time(payload.at, now) for payload in (*payloads[:1], *misdated[:1])], default=now)
    for payload in misdated:
        payload.at = first
    for payload in payloads:
        payload.at = min(payload.at, now)
    return misdated + payloads


def _age(payload: Payload) -> tuple[float, str]:
    return payload.at, payload.path


def _is_pid(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST_PID


def _is_payload(name: str) -> bool:
    """Tell whether a file has a name that mam's hook gives; mam does not touch other files."""
    parts = name.split(".")
    return len(parts) >= 4 and parts[-1] == "json" and is_session_id(parts[0]) and _is_pid(parts[1])


def _is_unfinished(name: str) -> bool:
    """Tell whether a file is one that a hook has not finished writing."""
    parts = name.split(".")
    return len(parts) >= 5 and not parts[0] and parts[-1] == "tmp" and is_session_id(parts[1])


def remove_unfinished(spool: str) -> None:
    """Remove the unfinished files of hooks that were killed."""
    try:
        listed = os.listdir(spool)
    except OSError:
        return
    for name in listed:
        path = os.path.join(spool, name)
        with suppress(OSError):
            if (
                _is_unfinished(name)
                and time.time() - os.stat(path, follow_symlinks=False).st_mtime > _ABANDONED_SECONDS
            ):
                os.unlink(path)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
