"""Skills for agents: what is shipped, where it is installed, and whether a person has changed it since.

An installed file ends with a line that holds the digest of what stands above it. A file that does not fit its
line, or has none, is a person's: it is neither overwritten nor removed.
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
    """Write what is missing or older; return the listing after it, each with what was done."""
    place = _place(context, folder, agent)
    states = _states(place)
    done = []
    for name, text in shipped().items():
        before = states[name]
        if before in (ABSENT, OLDER):
            _write(place, name, text)
        did = {ABSENT: "installed", OLDER: "renewed", CHANGED: "kept"}.get(before, "unchanged")
        done.append({**_entry(place, name, text), "did": did})
    return {"directory": place, "skills": done}


def uninstall(context: Context, folder: str | None = None, agent: str | None = None) -> Document:
    """Remove what mam installed and nobody changed; return the listing after it."""
    place = _place(context, folder, agent)
    states = _states(place)
    done = []
    for name, text in shipped().items():
        before = states[name]
        if before in (CURRENT, OLDER):
            os.unlink(os.path.join(place, name, _FILE))
            if not os.listdir(os.path.join(place, name)):
                os.rmdir(os.path.join(place, name))
        did = {ABSENT: "unchanged", CHANGED: "kept"}.get(before, "removed")
        done.append({**_entry(place, name, text), "did": did})
    return {"directory": place, "skills": done}


def _place(context: Context, folder: str | None, agent: str | None) -> str:
    """Return the folder that holds the skills: as named, or where an agent looks in this workspace."""
    if folder is not None and (not folder or "\0" in folder):
        raise InvalidPath("the directory has no name", hint="--dir .agents/skills")
    place = os.path.join(context.workspace, folder or PLACES[agent or "agents"])
    return os.path.abspath(place)


def _entry(place: str, name: str, text: str) -> Document:
    found = re.search(r'^description: "(.*)"$', text, re.MULTILINE)
    return {
        "name": name,
        "description": found[1] if found else "",
        "state": _state(place, name, text),
        "path": os.path.join(place, name, _FILE),
    }


def _states(place: str) -> dict[str, str]:
    """Return how each stands; what is refused is refused before anything is touched."""
    return {name: _state(place, name, text) for name, text in shipped().items()}


def _state(place: str, name: str, text: str) -> str:
    path = os.path.join(place, name, _FILE)
    for one in (os.path.dirname(path), path):
        if os.path.islink(one):
            raise NotAllowed(f"{one} is a symbolic link", hint="remove it, or name another directory")
    try:
        there = _read(path)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, UnicodeDecodeError):
        return CHANGED
    mark = _MARK.search(there)
    if mark is None or _digest(there[: mark.start()]) != mark[2]:
        return CHANGED
    return CURRENT if there == _marked(text) else OLDER


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
