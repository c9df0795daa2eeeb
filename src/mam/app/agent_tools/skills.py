"""Installs and removes the skills for agents that mam ships.

A skill is a folder with a page. Some skills also have scripts, which have the names and options of the
original system and execute mam. The last line of an installed file holds the digest of the text above it. If
the digest is missing or wrong, a person has changed the file, and mam neither overwrites nor removes it.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat

import mam
from mam.adapters.system import atomic_file
from mam.core.errors import InvalidPath, NotAllowed, ReadOnly, Usage

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
PAGE, SCRIPTS = "SKILL.md", "scripts"
_MARK = re.compile(r"\n(?:<!--|#) installed by mam (\S+), sha256 ([0-9a-f]{64})(?: -->)?\n\Z")
ABSENT, CURRENT, OLDER, CHANGED = "absent", "current", "older", "changed"
_ACTIONS = {ABSENT: "installed", OLDER: "renewed", CHANGED: "kept", CURRENT: "unchanged"}
_REMOVALS = {ABSENT: "unchanged", CHANGED: "kept", CURRENT: "removed", OLDER: "removed"}


def shipped() -> dict[str, dict[str, str]]:
    """Return the skills of this version: name -> path in the skill's folder -> text, the page first."""
    folder = os.path.join(os.path.dirname(mam.__file__), "skills")
    return {name: _files(os.path.join(folder, name)) for name in sorted(os.listdir(folder))}


def list_skills(context: Context, folder: str | None = None, agent: str | None = None) -> Document:
    """Return `{directory, skills: [{name, description, state, path, files}]}`. Reads only."""
    place = _place(context, folder, agent)
    return {"directory": place, "skills": [_entry(place, name, files) for name, files in shipped().items()]}


def install(context: Context, folder: str | None = None, agent: str | None = None) -> Document:
    """Write the missing and older files; return the listing afterwards, with the action for each skill."""
    place = _place(context, folder, agent)
    before = _states(place)
    listing = []
    for name, files in shipped().items():
        for path, text in files.items():
            if before[name][path] in (ABSENT, OLDER):
                _write(place, name, path, text)
        listing.append({**_entry(place, name, files), "did": _ACTIONS[_of_all(before[name])]})
    return {"directory": place, "skills": listing}


def uninstall(context: Context, folder: str | None = None, agent: str | None = None) -> Document:
    """Remove the unchanged files that mam installed; return the listing afterwards."""
    place = _place(context, folder, agent)
    before = _states(place)
    listing = []
    for name, files in shipped().items():
        for path in files:
            if before[name][path] in (CURRENT, OLDER):
                os.unlink(os.path.join(place, name, path))
        for below in (os.path.join(name, SCRIPTS), name):
            _remove_if_empty(os.path.join(place, below))
        listing.append({**_entry(place, name, files), "did": _REMOVALS[_of_all(before[name])]})
    return {"directory": place, "skills": listing}


def _files(folder: str) -> dict[str, str]:
    scripts = os.path.join(folder, SCRIPTS)
    names = sorted(os.listdir(scripts)) if os.path.isdir(scripts) else []
    paths = [PAGE, *(os.path.join(SCRIPTS, name) for name in names)]
    return {path: _read(os.path.join(folder, path)) for path in paths}


def _place(context: Context, folder: str | None, agent: str | None) -> str:
    """Return the folder of the skills: the named one, or the one that the agent reads in this workspace."""
    if folder is not None and (not folder or "\0" in folder):
        raise Usage("the directory is empty or contains a NUL", hint="--dir .agents/skills")
    if folder is None:
        folder = PLACES[agent or "agents"]
        _refuse_links_of_workspace(context, folder)
    place = os.path.abspath(os.path.join(context.workspace, folder))
    if os.path.lexists(place) and not os.path.isdir(place):
        raise InvalidPath(f"{place} is not a directory", hint="name another one: --dir .agents/skills")
    return place


def _refuse_links_of_workspace(context: Context, folder: str) -> None:
    """Refuse a linked folder: a repository could lead mam out of the workspace with one.

    In the user's home such a link is the user's own, for example into a repository of settings.
    """
    home = context.environ.get("HOME") or os.path.expanduser("~")
    if os.path.realpath(context.workspace) == os.path.realpath(home):
        return
    path = context.workspace
    for part in folder.split("/"):
        path = os.path.join(path, part)
        if os.path.islink(path):
            raise NotAllowed(
                f"{path} is a symbolic link, which may lead out of the workspace",
                hint=f"remove it; or, if you want the skills there, name the folder: --dir {folder}",
            )


def _entry(place: str, name: str, files: dict[str, str]) -> Document:
    match = re.search(r'^description: "(.*)"$', files[PAGE], re.MULTILINE)
    states = {path: _state(place, name, path, text) for path, text in files.items()}
    return {
        "name": name,
        "description": match[1] if match else "",
        "state": _of_all(states),
        "path": os.path.join(place, name, PAGE),
        "files": [
            {"path": os.path.join(place, name, path), "state": state} for path, state in states.items()
        ],
    }


def _states(place: str) -> dict[str, dict[str, str]]:
    """Return the state of each file. This raises before anything is changed, because it runs first."""
    return {
        name: {path: _state(place, name, path, text) for path, text in files.items()}
        for name, files in shipped().items()
    }


def _of_all(states: dict[str, str]) -> str:
    """Return the state of a skill: changed if a file is, and older if files are missing or differ."""
    found = set(states.values())
    if CHANGED in found:
        return CHANGED
    return found.pop() if len(found) == 1 else OLDER


def _state(place: str, name: str, path: str, text: str) -> str:
    installed_path = os.path.join(place, name, path)
    for checked_path in (os.path.join(place, name), os.path.dirname(installed_path), installed_path):
        if os.path.islink(checked_path):
            raise NotAllowed(
                f"{checked_path} is a symbolic link", hint="remove it, or name another directory"
            )
    try:
        if not stat.S_ISREG(os.lstat(installed_path).st_mode):
            # Opening a pipe would wait for a writer.
            raise NotAllowed(
                f"{installed_path} is not a regular file", hint="move it away, or name another directory"
            )
        installed = _read(installed_path)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, UnicodeDecodeError):
        return CHANGED
    mark = _MARK.search(installed)
    if mark is None or _digest(installed[: mark.start()]) != mark[2]:
        return CHANGED
    runs = path == PAGE or os.access(installed_path, os.X_OK)
    return CURRENT if runs and installed == _marked(path, text) else OLDER


def _write(place: str, name: str, path: str, text: str) -> None:
    full_path = os.path.join(place, name, path)
    try:
        os.makedirs(os.path.dirname(full_path), exist_ok=True)
        mode = 0o666 if path == PAGE else 0o777  # the umask reduces both
        atomic_file.replace(full_path, _marked(path, text).encode(), mode)
    except OSError as error:
        raise ReadOnly(
            f"{full_path} cannot be written: {error.strerror}",
            hint="name a directory that you may write into: --dir DIR",
        ) from error


def _remove_if_empty(folder: str) -> None:
    if os.path.isdir(folder) and not os.listdir(folder):
        os.rmdir(folder)


def _marked(path: str, text: str) -> str:
    body = text.rstrip("\n")
    mark = f"installed by mam {mam.__version__}, sha256 {_digest(body)}"
    return f"{body}\n<!-- {mark} -->\n" if path == PAGE else f"{body}\n# {mark}\n"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
