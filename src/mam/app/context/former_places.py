"""Where a root has been: after a move, the workspaces in its rows still name the former folder.

mam does not rewrite them, because agents keep their conversations by directory. A link at the former path
leads them here. As long as something else stands there, such as a fresh clone, no agent may start in it.
"""

from __future__ import annotations

import os
from shlex import quote

from mam.adapters.store import database
from mam.core.errors import MamError
from mam.core.root_state import Arrival, RootState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mam.adapters.store.rows_and_log import Transaction
    from mam.app.context.context import Context

_KEY = "places"
# The inodes of the folder at each place, and of the state in it.
_INODES = "place_inodes"
# What a restore of the same root takes over from a copy.
KEYS = (_KEY, _INODES)
_MOST = 8


class FormerPlace:
    """The former folder of a moved root, and the command that makes a workspace there lead here."""

    __slots__ = ("command", "root")

    def __init__(self, root: str, command: str) -> None:
        self.root = root
        self.command = command

    @property
    def way_on(self) -> str:
        """What a person does about it."""
        if self.command.startswith("mv "):
            # Whoever leads the path here gets the directory that stands there out of the way first.
            return f"move away what is at the former path, and let the path lead here: {self.command}"
        return f"let the former path lead here: {self.command}"


def note_place(context: Context) -> None:
    """Record the path of the root if it is new. A root that cannot be written records it another time."""
    try:
        if context.root.verdict().state != RootState.KNOWN or not os.path.exists(context.paths.db):
            return
        if _recorded(context)[-1:] != [context.paths.root]:
            # Before the change, which makes the user state forget the former path.
            places = _all(context)
            context.registry.note(lambda transaction: _record(transaction, places, context))
    except MamError:
        return


def former_place_of(context: Context, workspace: str) -> FormerPlace | None:
    """Return the former place of the root that a workspace lay in, if it does not lead into the root now.

    The workspace is gone, and the root has its folder now. Or another directory has its path.
    """
    is_there = os.path.isdir(workspace)
    root = context.paths.root
    if is_there and _leads_into(workspace, root):
        return None
    for former in reversed(_all(context)):
        if former == root or not f"{workspace}/".startswith(f"{former.rstrip('/')}/"):
            continue
        if is_there:
            if _has_stayed(context, former):
                continue
            return FormerPlace(former, _exchange_command(root, former))
        parts = os.path.relpath(workspace, former).split("/")
        parts = [] if parts == ["."] else parts
        if not os.path.isdir(os.path.join(root, *parts)):
            continue
        # Something else may stand at the former path: then the link belongs below it.
        for count in range(len(parts) + 1):
            link = os.path.join(former, *parts[:count])
            if not os.path.lexists(link):
                return FormerPlace(former, _link_command(os.path.join(root, *parts[:count]), link))
            if not os.path.isdir(link):
                # A file, or a link that leads nowhere.
                break
        return FormerPlace(former, _exchange_command(root, former))
    return None


def _leads_into(path: str, root: str) -> bool:
    """Tell whether a path leads to the root or to a place below it, by a link or a bind mount."""
    if not os.path.isdir(root):
        return False
    folder = os.path.realpath(path)
    while not os.path.samefile(folder, root):
        if folder == os.path.dirname(folder):
            return False
        folder = os.path.dirname(folder)
    return True


def _has_stayed(context: Context, former: str) -> bool:
    """Tell whether only the state was moved out of a folder, which is still there with its workspaces.

    The inode of a folder that was moved to another disk may be that of another folder by now. Then the state
    has got another inode as well.
    """
    inodes = _meta(context, _INODES)
    recorded = inodes.get(former) if isinstance(inodes, dict) else None
    return recorded is not None and recorded == _inodes(former, context.paths.state)


def _inodes(root: str, state: str) -> list[int]:
    return [os.stat(root).st_ino, os.stat(state).st_ino]


def _exchange_command(root: str, former: str) -> str:
    aside = f"{former}.aside"
    number = 1
    while os.path.lexists(aside):
        number += 1
        aside = f"{former}.aside-{number}"
    return f"mv {quote(former)} {quote(aside)} && ln -s {quote(root)} {quote(former)}"


def _link_command(target: str, link: str) -> str:
    folder = os.path.dirname(link)
    make = "" if os.path.isdir(folder) else f"mkdir -p {quote(folder)} && "
    return f"{make}ln -s {quote(target)} {quote(link)}"


def _all(context: Context) -> list[str]:
    """Return the recorded paths, and the one of which the user state knows the root until its next change."""
    places = _recorded(context)
    verdict = context.root.verdict()
    if verdict.arrival == Arrival.MOVED and verdict.state == RootState.KNOWN and verdict.known is not None:
        places = [*(place for place in places if place != verdict.known.root), verdict.known.root]
    return places


def _recorded(context: Context) -> list[str]:
    if context.root.verdict().state == RootState.COPY:
        # They are the places of its original.
        return []
    places = _meta(context, _KEY)
    # Somebody may have written the database.
    return [place for place in places if isinstance(place, str)] if isinstance(places, list) else []


def _meta(context: Context, key: str) -> object:
    connection = context.registry.reader()
    if connection is None:
        return None
    # Without a transaction: a resume looks at the workspace inside its own.
    return database.read_meta(connection, context.paths.db, (key,)).get(key)


def _record(transaction: Transaction, places: list[str], context: Context) -> None:
    root = context.paths.root
    kept = [*(place for place in places if place != root), root][-_MOST:]
    transaction.set_meta(_KEY, kept)
    recorded = transaction.meta(_INODES)
    known = recorded if isinstance(recorded, dict) else {}
    inodes = {place: known[place] for place in kept if place in known}
    transaction.set_meta(_INODES, {**inodes, root: _inodes(root, context.paths.state)})
