"""The team page on disk, beside the registry file; mam writes it again after each change."""

from __future__ import annotations

import os

from mam.adapters.store.database import translate_os
from mam.adapters.system import atomic_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.root_paths import RootPaths


def path_of(paths: RootPaths, team_id: str) -> str:
    """Return the path of a team's page."""
    return f"{os.path.splitext(paths.yaml)[0]}-{team_id}.md"


def write(paths: RootPaths, team_id: str, text: str) -> str:
    """Write the text, unless the file has it already; return the path."""
    path = path_of(paths, team_id)
    content = text.encode("utf-8", "replace")
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.tmp")
    try:
        if _read(path) == content:
            return path
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        atomic_file.replace(path, content, beside=temporary)
    except OSError as error:
        raise translate_os(error, path) from error
    return path


def remove(paths: RootPaths, team_id: str) -> None:
    """Remove the page of a team that is not recorded any more, if it has one."""
    path = path_of(paths, team_id)
    try:
        atomic_file.discard(path)
    except OSError as error:
        raise translate_os(error, path) from error


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
