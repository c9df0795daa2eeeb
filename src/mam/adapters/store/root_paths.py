"""The paths of a root's files, and the search for the root of a directory.

If a person names a registry file, its state lies beside the file, unless the real path of the file is the
usual one in a root.
"""

from __future__ import annotations

import os
import stat

from mam.adapters.store.database import translate_os
from mam.core.errors import InvalidPath, NotAllowed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection

YAML = ".hermes/agent-sessions.yaml"
STATE = ".mam"
_IGNORE_STATE = "# Made by mam: this folder is state of this machine.\n*\n"
_IGNORE_YAML = """\
# Made by mam: the registry is state of this machine.
agent-sessions.yaml*
agent-sessions-*.md
.agent-sessions.yaml*
.gitignore
"""


class RootPaths:
    """The files of one root."""

    __slots__ = ("db", "jobs", "launches", "root", "settings", "spool", "state", "yaml")

    def __init__(self, root: str, yaml: str, state: str) -> None:
        self.root = root
        self.yaml = yaml
        self.state = state
        self.db = os.path.join(state, "state.db")
        self.spool = os.path.join(state, "spool")
        self.launches = os.path.join(state, "launch")
        self.settings = os.path.join(state, "settings")
        self.jobs = os.path.join(state, "jobs")

    def exists(self) -> bool:
        """Tell whether this root has a registry."""
        return os.path.exists(self.db) or os.path.exists(self.yaml)

    def make_state_folder(self) -> None:
        """Create the folder of the state, private to the user, and nothing in it yet."""
        self.check()
        os.makedirs(self.state, mode=0o700, exist_ok=True)

    def make(self) -> None:
        """Create the folders, private to the user, and keep them out of git."""
        is_new = not os.path.exists(self.db)
        self.check()
        for folder in (self.state, self.spool, self.launches, self.settings, os.path.dirname(self.yaml)):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self.check()
        if is_new:
            _write_once(os.path.join(self.state, ".gitignore"), _IGNORE_STATE)
            if os.path.basename(os.path.dirname(self.yaml)) == ".hermes":
                _write_once(os.path.join(os.path.dirname(self.yaml), ".gitignore"), _IGNORE_YAML)

    def check(self) -> None:
        """Refuse state that lies behind a symbolic link. RootSafety judges whose the state is.

        A repository can contain links. If mam followed one, it would write and delete files elsewhere.
        """
        folders = [self.state, self.spool, self.launches, self.settings, self.jobs, self.db]
        if os.path.basename(os.path.dirname(self.yaml)) == ".hermes":
            folders.append(os.path.dirname(self.yaml))
        for folder in folders:
            if os.path.islink(folder):
                raise NotAllowed(f"{folder} is a symbolic link", hint="remove it; mam creates its own")
        for suffix in ("", "-wal", "-shm", "-journal"):
            _check_regular(self.db + suffix)


def _check_regular(path: str) -> None:
    """Refuse a file of the database that is a link, a FIFO or a device: SQLite would follow or wait."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISREG(mode):
        raise NotAllowed(f"{path} is not a regular file", hint="remove it; mam creates its own")


def of_root(root: str) -> RootPaths:
    """Return the files of a root."""
    return RootPaths(root, os.path.join(root, YAML), os.path.join(root, STATE))


def of_registry(file: str) -> RootPaths:
    """Return the files that belong to a registry file."""
    real = os.path.realpath(file)
    root = os.path.dirname(os.path.dirname(real))
    if os.path.join(root, YAML) == real:
        return of_root(root)
    return RootPaths(os.path.dirname(real), real, real + ".mam")


def find_root(start: str, recorded: Callable[[], Collection[str]] = tuple) -> str:
    """Return the nearest ancestor of start, or start itself, that holds state; else start.

    `recorded` returns the roots that the user state knows. One whose state was deleted counts too, so that
    nobody makes a new root below it by accident.
    """
    if not os.path.isdir(start):
        raise InvalidPath(f"{start} is not a directory", hint="name a directory that exists")
    first = os.path.realpath(start)
    folder, roots = first, None
    while True:
        if os.path.isdir(os.path.join(folder, STATE)) or os.path.isfile(os.path.join(folder, YAML)):
            return folder
        if roots is None:
            # Usually the directory is a root itself, and nothing has to be read.
            roots = recorded()
        if folder in roots:
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return first
        folder = parent


def fingerprint(path: str) -> list[int] | None:
    """Return inode, size and time of a file; None for a missing or empty one, which is never an edit."""
    try:
        facts = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate_os(error, path) from error
    if not stat.S_ISREG(facts.st_mode):
        raise InvalidPath(f"{path} is not a regular file", hint="name a file for the registry")
    return [facts.st_ino, facts.st_size, facts.st_mtime_ns] if facts.st_size else None


def _write_once(path: str, text: str) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
