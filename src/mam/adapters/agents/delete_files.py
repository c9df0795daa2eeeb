"""Deleting files of an agent below the folder of its store, without following symlinks.

Each folder of a path is opened relative to its parent and without following links. So nobody can redirect a
deletion by replacing a folder with a link meanwhile.
"""

from __future__ import annotations

import os
import stat

from mam.core.errors import NotAllowed, Unavailable


def remove(store: str, path: str) -> bool:
    """Delete the file or folder at `path` below `store`; return False if there is none."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise NotAllowed(f"{path} does not lie below {store}")
    try:
        folder = os.open(store, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unavailable(
            f"{store} cannot be opened: {error.strerror}", hint="nothing was deleted"
        ) from error
    try:
        for part in parts[:-1]:
            folder = _step_into(folder, part, path)
        return _delete(folder, parts[-1], path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Unavailable(
            f"{path} could not be deleted: {error.strerror}", hint="nothing else was deleted"
        ) from error
    finally:
        os.close(folder)


def _step_into(folder: int, part: str, path: str) -> int:
    try:
        inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError:
        raise NotAllowed(
            f"{path} leads through a link; nothing was deleted", hint="delete it by hand"
        ) from None
    os.close(folder)
    return inner


def _delete(folder: int, name: str, path: str) -> bool:
    facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(facts.st_mode):
        raise NotAllowed(f"{path} is a link; nothing was deleted", hint="delete it by hand")
    if facts.st_uid != os.geteuid():
        raise NotAllowed(f"{path} belongs to another user; nothing was deleted")
    if stat.S_ISDIR(facts.st_mode):
        _delete_folder(folder, name, path)
    else:
        os.unlink(name, dir_fd=folder)
    return True


def _delete_folder(folder: int, name: str, path: str) -> None:
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        for entry in os.listdir(inner):
            facts = os.stat(entry, dir_fd=inner, follow_symlinks=False)
            if stat.S_ISDIR(facts.st_mode):
                _delete_folder(inner, entry, path)
            else:
                os.unlink(entry, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)
