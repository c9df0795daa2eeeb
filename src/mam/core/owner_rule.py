"""Whether another user could have written what mam reads: by the owners and modes of files and folders. Pure.

What lies in a root can name programs and tmux servers, so it must come from this user or from root. Whoever
can write into a folder above can put another root in its place.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ROOT_USER = 0
_GROUP_WRITES, _OTHERS_WRITE, _STICKY = 0o020, 0o002, 0o1000
# How a path is judged.
FILE, FOLDER, LINK, PRIVATE, ABOVE = "file", "folder", "link", "private", "above"
# What is wrong with a path.
OWNER, GROUP, EVERYBODY = "owner", "group", "everybody"


class OwnedPath:
    """A path with its owner, group and mode.

    `role` is FILE, FOLDER, LINK (its mode means nothing), PRIVATE (a folder that its owner alone may write)
    or ABOVE (a folder above the root).
    """

    __slots__ = ("gid", "mode", "path", "role", "uid")

    def __init__(self, path: str, role: str, uid: int, gid: int, mode: int) -> None:
        self.path = path
        self.role = role
        self.uid = uid
        self.gid = gid
        self.mode = mode

    @property
    def is_writable_by_others(self) -> bool:
        """Whether the mode lets its group or everybody write."""
        return bool(self.mode & (_GROUP_WRITES | _OTHERS_WRITE))


class Danger:
    """A path that another user owns or can write to; `names` are the other members of its group."""

    __slots__ = ("kind", "names", "path")

    def __init__(self, kind: str, path: OwnedPath, names: Sequence[str] = ()) -> None:
        """`kind` is OWNER, GROUP or EVERYBODY."""
        self.kind = kind
        self.path = path
        self.names = names


def find_danger(
    paths: Iterable[OwnedPath],
    user: int,
    others_in_group: Callable[[int], Sequence[str]],
    is_unmapped: Callable[[int], bool],
) -> Danger | None:
    """Return the first path that another user than root owns or can write to; None if there is none.

    `others_in_group` returns the members of a group that are neither this user nor root. Many systems give
    each user a group of their own and the umask 002, so the bit alone is no danger. `is_unmapped` tells
    whether a user id stands for a user that this user namespace does not know: in a sandbox, root itself.
    """
    for path in paths:
        if path.uid not in (user, ROOT_USER) and not (path.role == ABOVE and is_unmapped(path.uid)):
            return Danger(OWNER, path)
        if path.role == LINK or not path.is_writable_by_others:
            continue
        # In a sticky folder nobody can rename or remove what belongs to others.
        if path.role in (FOLDER, ABOVE) and path.mode & _STICKY:
            continue
        if path.mode & _OTHERS_WRITE:
            return Danger(EVERYBODY, path)
        names = others_in_group(path.gid)
        if names or path.role == PRIVATE:
            return Danger(GROUP, path, names)
    return None


def is_named(root: str, entries: Iterable[str]) -> bool:
    """Tell whether `safe_roots` names a root: by its path, or a folder above it as `/folder/*`."""
    return any(
        root.startswith(entry[:-1]) if entry.endswith("/*") else root == (entry.rstrip("/") or "/")
        for entry in entries
    )
