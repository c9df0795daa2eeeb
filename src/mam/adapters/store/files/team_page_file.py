"""The team page on disk: in the session folder of its team if there is one, else beside the registry file.

The session folder is that of BMAD, `_bmad-output/sessions/ID` in the root. A file in it that mam did not
write stays as it is, and no symbolic link is followed.
"""

from __future__ import annotations

import os
import stat

from mam.adapters.store.database import translate_os
from mam.adapters.system import atomic_file
from mam.core.errors import NotAllowed
from mam.core.team_page import beginning
from mam.core.team_plan import SESSION_VARIABLE, is_session_id

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.root_paths import RootPaths

_SESSIONS = ("_bmad-output", "sessions")
_SESSION_FILE, _BESIDE = "agent-sessions.md", "agent-sessions-mam.md"


def path_of(paths: RootPaths, team_id: str) -> str:
    """Return the path of a team's page."""
    *places, usual = _places(paths, team_id)
    return next((place for place in places if _may_write(place, team_id)), usual)


def session_file_of_person(paths: RootPaths, team_id: str) -> str | None:
    """Return the session file of a team if it exists and mam did not write it."""
    place = _places(paths, team_id)[0]
    return place if not _may_write(place, team_id) else None


def make_session_folder(paths: RootPaths, team_id: str) -> list[str]:
    """Make the session folder of a team; return the folders that were not there before, the topmost first."""
    made: list[str] = []
    for folder in _folders(paths, team_id):
        try:
            os.mkdir(folder)
            made.append(folder)
        except FileExistsError:
            if not _is_folder(folder):
                kind = "a symbolic link" if os.path.islink(folder) else "no folder"
                raise NotAllowed(
                    f"{folder} is {kind}", hint=f"remove it, or unset {SESSION_VARIABLE}"
                ) from None
        except OSError as error:
            raise translate_os(error, folder) from error
    return made


def remove_session_folder(made: list[str]) -> None:
    """Remove folders that `make_session_folder` made, as far as they are empty."""
    for folder in reversed(made):
        try:
            os.rmdir(folder)
        except OSError:
            return


def write(paths: RootPaths, team_id: str, text: str) -> str:
    """Write the text, unless the file has it already; return the path."""
    path = path_of(paths, team_id)
    content = text.encode("utf-8", "replace")
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.tmp")
    try:
        if _starts_with(path, content, is_all=True):
            return path
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        atomic_file.replace(path, content, beside=temporary)
        _remove_pages(paths, team_id, besides=path)
    except OSError as error:
        raise translate_os(error, path) from error
    return path


def remove(paths: RootPaths, team_id: str) -> None:
    """Remove the page of a team that is not recorded any more, if it has one."""
    try:
        _remove_pages(paths, team_id)
    except OSError as error:
        raise translate_os(error, path_of(paths, team_id)) from error


def _places(paths: RootPaths, team_id: str) -> list[str]:
    """Return where the page may be, the preferred place first. The last one is always possible."""
    folders = _folders(paths, team_id)
    usual = f"{os.path.splitext(paths.yaml)[0]}-{team_id}.md"
    if not folders or not all(map(_is_folder, folders)):
        return [usual]
    return [os.path.join(folders[-1], _SESSION_FILE), os.path.join(folders[-1], _BESIDE), usual]


def _folders(paths: RootPaths, team_id: str) -> list[str]:
    """Return the folders from the root to the session folder; none for an id that leads elsewhere."""
    if not is_session_id(team_id):
        return []
    folder, folders = paths.root, []
    for name in (*_SESSIONS, team_id):
        folder = os.path.join(folder, name)
        folders.append(folder)
    return folders


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _may_write(path: str, team_id: str) -> bool:
    """Tell whether there is no file yet, or the page that mam wrote for this team."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return False
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return _is_page(path, team_id)


def _is_page(path: str, team_id: str) -> bool:
    return _starts_with(path, beginning(team_id).encode())


def _starts_with(path: str, content: bytes, *, is_all: bool = False) -> bool:
    """Tell whether a regular file begins with this content, or with `is_all` has this and no more."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return False
        return file.read(len(content) + is_all) == content


def _remove_pages(paths: RootPaths, team_id: str, besides: str | None = None) -> None:
    """Remove the pages of a team, which are out of date where a better place came up."""
    for place in _places(paths, team_id):
        if place != besides and _is_page(place, team_id):
            atomic_file.discard(place)
