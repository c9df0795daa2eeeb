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
_NAME_A_FILE = "name a file for the registry"
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
        self.check_state_folder()
        folders = [self.spool, self.launches, self.settings, self.jobs]
        if os.path.basename(os.path.dirname(self.yaml)) == ".hermes":
            folders.append(os.path.dirname(self.yaml))
        for path in (self.state, self.db):
            if os.path.islink(path):
                raise _link(path)
        for folder in folders:
            if os.path.islink(folder):
                raise NotAllowed(f"{folder} is a symbolic link", hint="remove it; mam creates its own")
        for suffix in ("", "-wal", "-shm", "-journal"):
            _check_regular(self.db + suffix, is_database=not suffix)

    def check_state_folder(self) -> None:
        """Refuse a file, a pipe or a device in the place of the folder of the state."""
        mode = _mode(self.state)
        if mode is not None and not stat.S_ISDIR(mode) and not stat.S_ISLNK(mode):
            raise NotAllowed(
                f"{self.state} is {_kind(mode)}, and not the folder of the state of a root",
                hint=f"{_move_away(self.state)}; if a state was there, mam restore then brings it back",
            )


def _mode(path: str) -> int | None:
    try:
        return os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise translate_os(error, path) from error


def _kind(mode: int) -> str:
    """Return what a path is, for a person."""
    if stat.S_ISLNK(mode):
        return "a symbolic link"
    kinds = {stat.S_IFREG: "a file", stat.S_IFDIR: "a directory", stat.S_IFIFO: "a named pipe"}
    return kinds.get(stat.S_IFMT(mode), "a socket or a device")


def _move_away(path: str) -> str:
    from shlex import quote

    return f"move it away: mv {quote(path)} {quote(path)}.aside"


def _link(path: str) -> NotAllowed:
    """Return the error for a link in the place of what a person may want to have back."""
    return NotAllowed(
        f"{path} is a symbolic link",
        hint=f"{os.path.realpath(path)} may hold the current state: move that to the place of the link; or "
        "remove the link, and mam restore brings back the newest copy",
    )


def _check_regular(path: str, *, is_database: bool) -> None:
    """Refuse a file of the database that is a link, a FIFO or a device: SQLite would follow or wait."""
    mode = _mode(path)
    if mode is None or stat.S_ISREG(mode):
        return
    then = "mam restore then brings back the newest copy" if is_database else "mam then goes on without it"
    raise NotAllowed(f"{path} is {_kind(mode)}, and not a regular file", hint=f"{_move_away(path)}; {then}")


def of_root(root: str) -> RootPaths:
    """Return the files of a root."""
    return RootPaths(root, os.path.join(root, YAML), os.path.join(root, STATE))


def of_registry(file: str) -> RootPaths:
    """Return the files that belong to a registry file; raise InvalidPath if they cannot have their names."""
    if "\0" in file:
        raise InvalidPath("the path of a registry contains a NUL character", hint=_NAME_A_FILE)
    real = os.path.realpath(file)
    root = os.path.dirname(os.path.dirname(real))
    if os.path.join(root, YAML) == real:
        return of_root(root)
    paths = RootPaths(os.path.dirname(real), real, real + ".mam")
    try:
        os.lstat(paths.state)
    except OSError as error:
        import errno

        if error.errno == errno.ENAMETOOLONG:
            raise InvalidPath(
                f"{file[:60]}… is too long for the path of a registry", hint=_NAME_A_FILE
            ) from None
    return paths


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
        raise InvalidPath(f"{path} is not a regular file", hint=_NAME_A_FILE)
    return [facts.st_ino, facts.st_size, facts.st_mtime_ns] if facts.st_size else None


def _write_once(path: str, text: str) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
