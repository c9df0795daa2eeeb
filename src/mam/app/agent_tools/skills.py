"""Installs and removes the skills for agents that mam ships.

The last line of an installed file holds the digest of the text above it. If the digest is missing or wrong, a
person has changed the file, and mam neither overwrites nor removes it.
"""

from __future__ import annotations

import hashlib
import os
import re

import mam
from mam.adapters.system import atomic_file
from mam.core.errors import InvalidPath, NotAllowed, ReadOnly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from mam.app.context.context import Context

    Document = dict[str, Any]

# Where each agent looks for the skills of a project.
PLACES = {
    "agents": ".agents/skills",
    "claude": ".claude/skills",
    "codex": ".agents/skills",
    "gemini": ".gemini/skills",
}
_FILE = "SKILL.md"
_MARK = re.compile(r"\n<!-- installed by mam (\S+), sha256 ([0-9a-f]{64}) -->\n\Z")
ABSENT, CURRENT, OLDER, CHANGED = "absent", "current", "older", "changed"


def shipped() -> dict[str, str]:
    """Return the skills of this version: name -> text."""
    folder = os.path.join(os.path.dirname(mam.__file__), "skills")
    return {name: _read(os.path.join(folder, name, _FILE)) for name in sorted(os.listdir(folder))}


def list_skills(context: Context, folder: str | None = None, agent: str | None = None) -> Document:
    """Return `{directory, skills: [{name, description, state, path}]}`. Reads only."""
    place = _place(context, folder, agent)
    return {"directory": place, "skills": [_entry(place, name, text) for name, text in shipped().items()]}


def install(context: Context, folder: str | None = None, agent: str | None = None) -> Document:
    """Write the missing and older skills; return the listing afterwards, with the action for each skill."""
    place = _place(context, folder, agent)
    states = _states(place)
    listing = []
    for name, text in shipped().items():
        before = states[name]
        if before in (ABSENT, OLDER):
            _write(place, name, text)
        action = {ABSENT: "installed", OLDER: "renewed", CHANGED: "kept"}.get(before, "unchanged")
        listing.append({**_entry(place, name, text), "did": action})
    return {"directory": place, "skills": listing}


def uninstall(context: Context, folder: str | None = None, agent: str | None = None) -> Document:
    """Remove the unchanged skills that mam installed; return the listing afterwards."""
    place = _place(context, folder, agent)
    states = _states(place)
    listing = []
    for name, text in shipped().items():
        before = states[name]
        if before in (CURRENT, OLDER):
            os.unlink(os.path.join(place, name, _FILE))
            if not os.listdir(os.path.join(place, name)):
                os.rmdir(os.path.join(place, name))
        action = {ABSENT: "unchanged", CHANGED: "kept"}.get(before, "removed")
        listing.append({**_entry(place, name, text), "did": action})
    return {"directory": place, "skills": listing}


def _place(context: Context, folder: str | None, agent: str | None) -> str:
    """Return the folder of the skills: the named one, or the one that the agent reads in this workspace."""
    if folder is not None and (not folder or "\0" in folder):
        raise InvalidPath("the directory is empty or contains a NUL", hint="--dir .agents/skills")
    place = os.path.join(context.workspace, folder or PLACES[agent or "agents"])
    return os.path.abspath(place)


def _entry(place: str, name: str, text: str) -> Document:
    match = re.search(r'^description: "(.*)"$', text, re.MULTILINE)
    return {
        "name": name,
        "description": match[1] if match else "",
        "state": _state(place, name, text),
        "path": os.path.join(place, name, _FILE),
    }


def _states(place: str) -> dict[str, str]:
    """Return the state of each skill. This raises before anything is changed, because it runs first."""
    return {name: _state(place, name, text) for name, text in shipped().items()}


def _state(place: str, name: str, text: str) -> str:
    path = os.path.join(place, name, _FILE)
    for checked_path in (os.path.dirname(path), path):
        if os.path.islink(checked_path):
            raise NotAllowed(
                f"{checked_path} is a symbolic link", hint="remove it, or name another directory"
            )
    try:
        installed = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, UnicodeDecodeError):
        return CHANGED
    mark = _MARK.search(installed)
    if mark is None or _digest(installed[: mark.start()]) != mark[2]:
        return CHANGED
    return CURRENT if installed == _marked(text) else OLDER


def _write(place: str, name: str, text: str) -> None:
    folder = os.path.join(place, name)
    path = os.path.join(folder, _FILE)
    try:
        os.makedirs(folder, exist_ok=True)
        atomic_file.replace(path, _marked(text).encode(), 0o666)
    except OSError as error:
        raise ReadOnly(f"{path} cannot be written: {error.strerror}") from error


def _marked(text: str) -> str:
    body = text.rstrip("\n")
    return f"{body}\n<!-- installed by mam {mam.__version__}, sha256 {_digest(body)} -->\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
