"""Reads who owns files and folders, and who is in a group. Nothing is looked up before it is needed."""

from __future__ import annotations

import os
import stat

from mam.core.owner_rule import (
    ABOVE,
    EVERYBODY,
    FILE,
    FOLDER,
    LINK,
    OWNER,
    PRIVATE,
    OwnedPath,
    find_danger,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mam.core.owner_rule import Danger

_MOST_NAMES = 5
# By group and user: a look into the databases of a network takes time.
_others: dict[tuple[int, int], list[str]] = {}


def look(path: str, role: str | None = None) -> OwnedPath | None:
    """Return the owner of a path, or of the link at this path; None where nothing is. Raises OSError."""
    try:
        return _owned(path, os.lstat(path), role)
    except (FileNotFoundError, NotADirectoryError):
        return None


def look_at(path: str, handle: int) -> OwnedPath:
    """Return the owner of an open file."""
    return _owned(path, os.fstat(handle), None)


def _owned(path: str, facts: os.stat_result, role: str | None) -> OwnedPath:
    if stat.S_ISLNK(facts.st_mode):
        role = LINK
    elif role is None:
        role = FOLDER if stat.S_ISDIR(facts.st_mode) else FILE
    return OwnedPath(path, role, facts.st_uid, facts.st_gid, stat.S_IMODE(facts.st_mode))


def look_through(path: str, role: str | None = None) -> Iterator[OwnedPath]:
    """Yield the owner of a path; of a link also its target's, and of the folders above that."""
    found = look(path, role)
    if found is None:
        return
    yield found
    if found.role == LINK:
        target = os.path.realpath(path)
        if (there := look(target)) is not None:
            yield there
        yield from folders_above(target)


def folders_above(path: str) -> Iterator[OwnedPath]:
    """Yield the owners of the folders above a path without links, the nearest first."""
    while (folder := os.path.dirname(path)) != path:
        path = folder
        if (found := look(path, ABOVE)) is not None:
            yield found


def danger_of(paths: Iterable[OwnedPath]) -> Danger | None:
    """Return the first path that another user than root owns or can write to."""
    user = os.geteuid()
    return find_danger(paths, user, lambda gid: others_in_group(gid, user), is_unmapped)


def others_in_group(gid: int, user: int) -> list[str]:
    """Return the members of a group, also by their first group, that are neither the user nor root."""
    key = (gid, user)
    if key not in _others:
        import grp
        import pwd

        entries = pwd.getpwall()
        # Some databases answer for one user and list none.
        own = {user_name(user), *(entry.pw_name for entry in entries if entry.pw_uid in (user, 0))}
        try:
            members = set(grp.getgrgid(gid).gr_mem)
        except KeyError:
            members = set()
        members.update(entry.pw_name for entry in entries if entry.pw_gid == gid)
        _others[key] = sorted(members - own)
    return _others[key]


def is_unmapped(uid: int) -> bool:
    """Tell whether an id stands for all users that this process's user namespace does not know."""
    try:
        with open("/proc/sys/kernel/overflowuid", encoding="ascii") as file:
            if uid != int(file.read()):
                return False
        with open("/proc/self/uid_map", encoding="ascii") as file:
            ranges = [tuple(map(int, line.split())) for line in file]
    except (OSError, ValueError):
        return False
    return not any(first <= uid < first + count for first, _, count in ranges)


def sentence(danger: Danger) -> tuple[str, str]:
    """Return what is wrong with a path, and the command that mends it."""
    import shlex

    path, user = danger.path, user_name(os.geteuid())
    target = shlex.quote(path.path)
    if danger.kind == OWNER:
        message = f"{path.path} belongs to {user_name(path.uid)}, and mam runs as {user}"
        whole = "-R " if path.role in (FOLDER, PRIVATE) else ""
        return message, f"sudo chown {whole}{os.geteuid()} {target}"
    if path.role == PRIVATE:
        return f"other users can write into {path.path}", f"chmod 700 {target}"
    if danger.kind == EVERYBODY:
        return f"every user can write to {path.path}", f"chmod go-w {target}"
    others = ", ".join(danger.names[:_MOST_NAMES]) + (" and others" if danger.names[_MOST_NAMES:] else "")
    group = group_name(path.gid)
    return f"others of the group {group} can write to {path.path}: {others}", f"chmod g-w {target}"


def user_name(uid: int) -> str:
    """Return the name of a user for people."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def group_name(gid: int) -> str:
    """Return the name of a group for people."""
    import grp

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
